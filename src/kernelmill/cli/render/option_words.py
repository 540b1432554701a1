"""Messages of the library, which name parameters of Python functions, in words of options."""

from __future__ import annotations

import ast
import re
import shlex

__all__ = ["in_words_of_options"]

# Parameters whose options have other names, then those that are spelled as options are.
_OPTIONS = {"feature_map": "--map", "random_state": "--seed", "n_threads": "--threads"}
_SAME_NAMES = (
    *("alpha", "categorical", "decimal", "delimiter", "drop", "epochs", "exact_rows", "format"),
    *("header", "holdout", "kernel", "keep_columns", "length_scale", "loss", "missing"),
    *("n_components", "numeric", "out", "probabilities", "rows", "skip_rows", "std", "target"),
    *("task", "tune", "weights"),
)
_OPTIONS |= {name: "--" + name.replace("_", "-") for name in _SAME_NAMES}
_FLAGS = {"header", "tune", "probabilities", "std", "keep_columns"}
_NAMES = "|".join(sorted(_OPTIONS, key=len, reverse=True))
_TEXT = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_ASSIGNMENT = re.compile(
    rf"(?<![\w.\"'-])({_NAMES})="
    rf"([\[(](?:{_TEXT}|[^\])'\"])*[\])]|{_TEXT}|[\w.+-]*\w|\.\.\.)(?!\()"
)
_NAMED_BOTH = re.compile(rf"\b(?:the )?({_NAMES}) \((--[\w-]+)([^)]*)\)")
_SUBJECT = re.compile(rf"^({_NAMES})(?= (?:must|should|cannot|is|has|names)\b)")
_OTHER_CHECKPOINT = "delete it to start from the beginning, or give another path"


def in_words_of_options(message: str) -> str:
    """A message of the library with options in place of parameters of Python functions.

    Where a message gives both, such as "task='regression' (--task regression)", one is left.

    Examples
    --------
    >>> in_words_of_options("target must be a column; write target='age' or header=False.")
    '--target must be a column; write --target age or --no-header.'
    >>> in_words_of_options("leave them out: drop=['a', 'b c'] (--drop a --drop 'b c').")
    "leave them out: --drop a --drop 'b c'."
    """
    message = message.replace(
        _OTHER_CHECKPOINT, "run again without --resume to start from the beginning"
    )
    message = _SUBJECT.sub(lambda match: _OPTIONS[match[1]], message)
    parts = []
    place = 0
    while match := _ASSIGNMENT.search(message, place):
        option, end = _option(match[1], match[2], message, match.end())
        parts += [message[place : match.start()], option]
        place = end
    message = "".join([*parts, message[place:]])
    return _NAMED_BOTH.sub(
        # Of one option only: "leave it out (--drop x)" does not name --out.
        lambda match: match[2] + match[3] if match[2] == _OPTIONS[match[1]] else match[0],
        message,
    )


def _option(name: str, text: str, message: str, end: int) -> tuple[str, int]:
    """The option for "name=text" that ends at `end`; where the message goes on after it.

    The option may follow in brackets, after a slash or after a comma. Names of columns may hold
    brackets and blanks, so what follows is compared with the spellings that the value can have.
    """
    flag = _OPTIONS[name]
    values = _values(text)
    if name in _FLAGS and values in (["True"], ["False"]):
        option = flag if values == ["True"] else "--no-" + flag[2:]
        spellings = [option]
    else:
        option = _repeated(flag, [shlex.quote(value) for value in values]) or flag
        spellings = [
            option,
            _repeated(flag, values),
            _repeated(flag, [repr(value) for value in values]),
            f"{flag} {' '.join(values)}",
            flag,
        ]
    rest = message[end:]
    for spelling in spellings:
        for before, after in ((" (", ")"), (" / ", ""), (", ", "")):
            same = before + spelling + after
            if spelling and rest.startswith(same) and not rest[len(same) :][:1].isalnum():
                is_bare = spelling == flag and not after and rest[len(same) :].startswith(" ")
                if not is_bare:  # "/ --drop x" goes on with a value of its own
                    return option, end + len(same)
    other = re.match(rf" \(({re.escape(flag)} [^)]+)\)", rest)  # such as delimiter='\t' as "tab"
    return (other[1], end + other.end()) if other else (option, end)


def _repeated(flag: str, values: list[str]) -> str:
    return " ".join(f"{flag} {value}" for value in values)


def _values(text: str) -> list[str]:
    """What is assigned, as strings; one for each element of a list."""
    if text == "...":
        return []
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return [text]
    if isinstance(value, list | tuple):
        return [str(each) for each in value]
    return [value if isinstance(value, str) else text]
