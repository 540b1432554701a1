"""Every text of the sources, rendered: words that are joined, doubled spaces and marks.

Strings are read from the syntax tree. A value that is not known without running the code becomes a
hole; names, parameters and functions of the same module are replaced by the strings that they can
be, so that both alternatives of a conditional clause are read.
"""

import ast
import io
import itertools
import re
import tokenize
from pathlib import Path

import click
import pytest

import kernelmill
from kernelmill.cli.program.group import COMMANDS, program

PACKAGE = Path(kernelmill.__file__).parent
SOURCES = sorted(PACKAGE.rglob("*.py"))
HOLE = "\N{WHITE SQUARE}"
CLAUSE = "\N{WHITE CIRCLE}"  # a hole that may be empty
MOST_TEXTS = 200
DEEPEST = 16
# Names of clauses, empty or with a space or comma at their beginning, whose text is made elsewhere.
CLAUSES = {"words", "name", "why"}

FAULTS = {
    "a value is joined to the next word": rf"[{HOLE}{CLAUSE}][A-Za-z]",
    "a word is joined to the next value": rf"(?<!\b0x)(?<=[A-Za-z]){HOLE}",
    "two values are joined": HOLE * 2,
    "two words are joined": r"[a-z]{2}[,;][A-Za-z]{2}",
    "a doubled space": rf"[^\s{HOLE}]  +[^\s{HOLE}]",  # two spaces may separate values
    "a space before a mark": r"\w [,.;:](?:\s|$)",
    "a doubled mark": r"[,;:][,;:]|[,;:]\.(?!\.)|(?<!\.)(?<!al)\.[,;:.](?!\.)",
    "a doubled word": r"\b([A-Za-z]{2,})\s+\1\b",
}
# Code in texts: dotted names, URLs and marks that are quoted or listed.
CODE = r"``.*?``|:\w+:`.*?`|`.*?`|\b[a-z_]+(\.\w+)+|\w+://\S*|'[^'\s]{1,3}'|\.\.\.|\w+=\S+"


def find_faults(text):
    """What is wrong with a text, if it is prose: at least two words before other words."""
    if len(re.findall(r"[a-z]{2,} ", text)) < 2:
        return []
    text = re.sub(CODE, "\N{BULLET}", text)
    found = {name: re.search(pattern, text) for name, pattern in FAULTS.items()}
    return [
        f"{name}: {text[max(0, at.start() - 30) : at.end() + 30].replace(HOLE, '{}')!r}"
        for name, at in found.items()
        if at
    ]


def is_text(node):
    """Whether an expression is certainly a string."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    if isinstance(node, ast.IfExp):
        return is_text(node.body) or is_text(node.orelse)
    if isinstance(node, ast.BoolOp):
        return is_text(node.values[-1])
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Add) and (is_text(node.left) or is_text(node.right))
    return isinstance(node, ast.JoinedStr)


class Module:
    """The texts of one file."""

    def __init__(self, source):
        self.tree = ast.parse(source)
        self.parents = {
            child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)
        }
        nodes = list(ast.walk(self.tree))
        self.functions = {n.name: n for n in nodes if isinstance(n, ast.FunctionDef)}
        self.calls = [n for n in nodes if isinstance(n, ast.Call)]
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
        self.docstrings = {
            node.body[0].value: ast.get_docstring(node)
            for node in nodes
            if isinstance(node, documented) and ast.get_docstring(node)
        }

    def texts(self):
        """Each string expression, with the texts that it can be."""
        for node in ast.walk(self.tree):
            if is_text(node) and node not in self.docstrings and not self._is_part(node):
                yield node, self.render(node)

    def _is_part(self, node):
        while not isinstance(node, ast.stmt | ast.Call | ast.arg):
            node = self.parents[node]
            if is_text(node):
                return True
        return False

    def render(self, node, depth=0):
        """The texts that an expression can be, at most `MOST_TEXTS`."""

        def read(*nodes):
            return list(dict.fromkeys(t for n in nodes for t in self.render(n, depth + 1)))

        texts = [HOLE]
        if isinstance(node, ast.Constant):
            texts = [str(node.value)]
        elif isinstance(node, ast.IfExp):
            texts = read(node.body, node.orelse)
        elif isinstance(node, ast.BoolOp):
            texts = read(*node.values)
        elif isinstance(node, ast.JoinedStr) or (isinstance(node, ast.BinOp) and is_text(node)):
            parts = node.values if isinstance(node, ast.JoinedStr) else (node.left, node.right)
            product = itertools.product(*map(read, parts))
            texts = ["".join(each) for each in itertools.islice(product, MOST_TEXTS)]
        elif isinstance(node, ast.FormattedValue):
            if node.format_spec is None and node.conversion == -1:
                texts = read(node.value)
                if texts == [HOLE] and isinstance(node.value, ast.Name):
                    texts = [CLAUSE if node.value.id in CLAUSES else HOLE]
        elif isinstance(node, ast.Subscript):
            is_rest = isinstance(node.slice, ast.Slice) and node.slice.lower  # text[1:]
            texts = [CLAUSE if is_rest else HOLE]
        elif depth < DEEPEST:
            texts = read(*(value for value in self._values(node) if is_text(value)))
            # An empty string is where other values are added, or stands for one.
            texts = texts if any(texts) else [HOLE]
        return texts

    def _values(self, node):
        """The expressions that a name or a call of a function of this module stands for."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            function = self.functions.get(node.func.id)
            inside = ast.walk(function) if function else ()
            return [n.value for n in inside if isinstance(n, ast.Return) and n.value]
        if not isinstance(node, ast.Name):
            return []
        scope = node
        while not isinstance(scope, ast.FunctionDef | ast.Module):
            scope = self.parents[scope]
        found = self._assigned(scope, node.id)
        if isinstance(scope, ast.FunctionDef):
            found += self._arguments(scope, node.id)
        return found or self._assigned(self.tree, node.id)

    def _assigned(self, scope, name):
        nodes = scope.body if isinstance(scope, ast.Module) else ast.walk(scope)
        found = []
        for node in nodes:
            if isinstance(node, ast.For) and isinstance(node.iter, ast.Tuple | ast.List):
                for each in node.iter.elts:  # for name, text in (("a", "b"), ("c", "d")):
                    pairs = [(node.target, each)]
                    if isinstance(node.target, ast.Tuple) and isinstance(each, ast.Tuple):
                        pairs = zip(node.target.elts, each.elts, strict=False)
                    found += [v for t, v in pairs if isinstance(t, ast.Name) and t.id == name]
                continue
            if isinstance(node, ast.Assign):
                targets = node.targets
            elif isinstance(node, ast.AnnAssign | ast.NamedExpr):
                targets = [node.target]
            else:
                continue
            if any(isinstance(t, ast.Name) and t.id == name for t in targets) and node.value:
                found.append(node.value)
        return found

    def _arguments(self, function, name):
        """What calls in this module pass for a parameter, and its default."""
        parameters = [*function.args.posonlyargs, *function.args.args]
        names = [parameter.arg for parameter in parameters]
        keywords = function.args.kwonlyargs
        if name not in names and name not in [k.arg for k in keywords]:
            return []
        defaults = dict(zip(reversed(names), reversed(function.args.defaults), strict=False))
        defaults |= {k.arg: d for k, d in zip(keywords, function.args.kw_defaults, strict=True)}
        found = [defaults[name]] if defaults.get(name) else []
        is_method = names[:1] in (["self"], ["cls"])
        for call in self.calls:
            callee = call.func
            if getattr(callee, "attr", getattr(callee, "id", None)) != function.name:
                continue
            place = names.index(name) - is_method if name in names else len(call.args)
            found += call.args[place : place + 1]
            found += [k.value for k in call.keywords if k.arg == name]
        return found

    def messages(self):
        """Calls of errors, messages and remedies, with the texts of each argument."""
        for call in self.calls:
            name = getattr(call.func, "attr", getattr(call.func, "id", ""))
            if re.search(r"(Error|Message|Doubt|Remedy)$", name):
                for place, argument in enumerate(call.args):
                    if is_text(argument):
                        yield call, name, place, self.render(argument)


def prose_of(docstring):
    """The paragraphs of a docstring, without examples, tables, formulas and names of parameters."""
    for paragraph in re.split(r"\n\s*\n", docstring):
        if re.search(r"^\s*(>>> |\.\. |===|---)", paragraph, re.MULTILINE):
            continue
        for part in re.split(r"^.* : .*$", paragraph, flags=re.MULTILINE):
            yield " ".join(line.strip() for line in part.splitlines())


def join_of(source):
    """Pairs of adjacent string literals, which the compiler joins: the texts and the line."""
    started, nested, previous = None, 0, None
    lines = source.splitlines(keepends=True)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        kind = tokenize.tok_name[token.type]
        if kind == "FSTRING_START":  # from Python 3.12; before, all strings are one token
            started, nested = started if nested else token.start, nested + 1
            continue
        nested -= kind == "FSTRING_END"
        if nested or kind in ("NL", "COMMENT"):
            continue
        if kind not in ("STRING", "FSTRING_END"):
            previous = None
            continue
        (first, start), (last, end) = started or token.start, token.end
        started = None
        literal = "".join(lines[first - 1 : last])
        literal = literal[start : len(literal) - len(lines[last - 1]) + end]
        node = ast.parse(literal, mode="eval").body
        values = node.values if isinstance(node, ast.JoinedStr) else [node]
        pieces = [v.value if isinstance(v, ast.Constant) else HOLE for v in values]
        text = "".join(pieces) if all(isinstance(p, str) for p in pieces) else None
        if previous and text:
            yield previous, text, first
        previous = text


def is_joined_wrongly(left, right):
    """Whether two literals of prose have no space or two between them."""
    if not re.search(r"[a-z]{2,} ", left + right) or left.endswith("\n") or HOLE in right[:1]:
        return False
    if left[-1:].isspace() or right[:1].isspace():
        return left[-1:].isspace() and right[:1].isspace()
    return bool(re.match(r"[\w'\"(\[]", right)) and not re.search(r"[\"'(\[/\-]$", left)


def faults_of(source):
    """All faults of a file, each with its line."""
    module = Module(source)
    for node, texts in module.texts():
        yield from ((node.lineno, fault) for text in texts for fault in find_faults(text))
    for node, docstring in module.docstrings.items():
        prose = prose_of(docstring)
        yield from ((node.lineno, fault) for text in prose for fault in find_faults(text))
    for left, right, line in join_of(source):
        if is_joined_wrongly(left, right):
            yield line, f"two strings are joined: {left[-30:]!r} {right[:30]!r}"
    for call, name, place, texts in module.messages():
        for text in texts:
            if text != text.strip():
                yield call.lineno, f"a space at the end of a message: {text!r}"
            is_sentence = name in ("ValueError", "TypeError", "AttributeError", "RuntimeError")
            is_over = text.endswith((".", ",", ";", ":")) and not text.endswith("...")
            if is_over and not is_sentence:
                yield call.lineno, f"a mark before the one that is added: {text!r}"
            is_remedy = name == "Remedy" or place > 0
            continues = place == 0 and any(k.arg == "parameter" for k in call.keywords)
            if (is_remedy or continues) and re.match(r"[A-Z][a-z]+ ", text) and not is_sentence:
                yield call.lineno, f"a capital within a sentence: {text!r}"


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: p.relative_to(PACKAGE).as_posix())
def test_texts_of_the_sources(path):
    assert list(dict.fromkeys(faults_of(path.read_text()))) == []


def test_help_of_commands():
    """As the program prints it, with the texts that options compute."""
    context = click.Context(program, info_name="kernelmill")
    for name in COMMANDS:
        command = program.get_command(context, name)
        texts = [command.help, *(getattr(each, "help", None) for each in command.params)]
        assert [fault for text in texts if text for fault in find_faults(text)] == [], name
        with click.Context(command, parent=context, info_name=name) as inner:
            assert len(command.get_help(inner)) > 100


PLANTED = {
    "a value is joined to the next word": [
        'raise Error(f"must be one of {known}or a map of this kind")',
        'raise Error(f"the rows of {first!r}and of the others differ")',
    ],
    "a word is joined to the next value": [
        'raise Error(f"must be a number of rows, got{value!r}")',
        'clause = f"{x:.3g} more" if x else ""\nraise Error(f"there are no rows{clause} here")',
        'def check(where):\n    raise Error(f"there are no rows{where}")\ncheck(f"{path} of it")',
    ],
    "two values are joined": ['Doubt(f"the column has the values {a}{b} in the table")'],
    "two words are joined": [
        'raise Error("must be the name of a column,or a number")',
        'why = "of all" if x else "none"\nraise Error(f"the column has no rows;{why} columns")',
    ],
    "two strings are joined": [
        'raise Error("this is the name of a column"\n    "and not a number")',
        'raise Error(f"this is the name of {x}"\n    "and not a number")',
        'raise Error("there is no such file", ["check its name" "choose another file"])',
        'raise Error("this is the name of a column "\n    f" and not a number")',
    ],
    "a doubled space": [
        'raise Error("there are  no rows in the table")',
        "raise Error(f\"there are {'' if few else 'not '} enough rows\")",
    ],
    "a space before a mark": ['raise Error("there are no rows , so nothing is fitted")'],
    "a doubled mark": ["raise Error(f\"there are no rows,{', so' if x else ''} nothing is left\")"],
    "a doubled word": [
        'raise Error("there are no rows in the the table")',
        'def f():\n    """Return the number of of rows in the table."""',
    ],
    "a mark before the one that is added": ['Remedy("leave out the column.", drop=["a"])'],
    "a capital within a sentence": [
        'raise Error("Must be the name of a column", parameter="x")',
        'raise Error("there are no rows", "Use a table with rows")',
    ],
    "a space at the end": ['raise Error("there are no rows in the table ")'],
}


@pytest.mark.parametrize(
    ("fault", "source"), [(fault, each) for fault, sources in PLANTED.items() for each in sources]
)
def test_planted_faults_are_found(fault, source):
    found = [text for _, text in faults_of(source)]
    assert any(text.startswith(fault) for text in found), found


@pytest.mark.parametrize(
    "source",
    [
        'raise Error(f"must be one of {known}, or a map: {value!r} is none", parameter="x")',
        'clause = f" of {x}" if x else ""\nraise Error(f"there are no rows{clause}; see {known}")',
        'raise Error("this is the name of a column, "\n    f"{x}, and not a number")',
        'raise Error(f"the file has {n}-word names (`a,b`, name.of.it), ..., al., and so on ...")',
        'def f():\n    """Return one.\n\n    x : int,optional\n    >>> f(), the the\n    """',
    ],
)
def test_correct_texts_have_no_faults(source):
    assert list(faults_of(source)) == []
