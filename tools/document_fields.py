"""Write the tables of docs/model-files.md that follow from the declarations of stored classes.

``python tools/document_fields.py`` replaces everything after the heading "All fields".
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from kernelmill.files.fields import RecordOf
from kernelmill.files.kinds import Array, Either, Kind
from kernelmill.kernels.names import STORABLE, stored_fields
from kernelmill.learners.stored import LEARNERS
from kernelmill.maps.registry import MAPS
from kernelmill.maps.stored import fitted_map_fields

PAGE = Path(__file__).parents[1] / "docs" / "model-files.md"
HEADING = "## All fields\n"


def tables() -> str:
    """The section, from its heading to the end of the page."""
    parts = [
        HEADING,
        "Written by `tools/document_fields.py` from the declarations in the code. A record with "
        "other fields or values is\nrejected.\n",
    ]
    for name, fields in LEARNERS.items():
        parts.append(table(f"`{name}`", fields))
    for name, family in MAPS.items():
        fields = fitted_map_fields(family)
        own = {key: kind for key, kind in fields.items() if isinstance(kind, RecordOf)}
        parts.append(table(f"`map`: {name}", own))
    kernels = {name: stored_fields(family) for name, family in STORABLE.items()}
    numbers = {
        name: RecordOf(fields)
        for name, fields in kernels.items()
        if fields and not any(isinstance(kind, Array) for kind in fields.values())
    }
    parts.append(table("kernels", numbers))
    return "\n".join(parts)


def table(title: str, fields: Mapping[str, Kind]) -> str:
    """One table; the fields of records inside follow with their path."""
    lines = [f"| {title} | what it must be |", "| --- | --- |"]
    lines += [f"| `{path}` | {text} |" for path, text in rows(fields)]
    return "\n".join(lines) + "\n"


def rows(fields: Mapping[str, Kind], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Path and description of each field."""
    for name, kind in fields.items():
        inner = next((each for each in _alternatives(kind) if isinstance(each, RecordOf)), None)
        if inner is not None:
            if kind is not inner:
                yield f"{prefix}{name}", "null or an object"
            yield from rows(inner.fields, f"{prefix}{name}.")
        else:
            is_tensor = isinstance(kind, Array)
            shown = (kind.tensor or name) if isinstance(kind, Array) else f"{prefix}{name}"
            optional = " (may be absent)" if isinstance(kind, Array) and kind.optional else ""
            yield shown, ("tensor: " if is_tensor else "") + kind.description + optional


def _alternatives(kind: Kind) -> tuple[Kind, ...]:
    return kind.kinds if isinstance(kind, Either) else (kind,)


if __name__ == "__main__":
    text = PAGE.read_text()
    begin = text.find(HEADING)
    kept = text if begin < 0 else text[:begin]
    PAGE.write_text(kept.rstrip() + "\n\n" + tables())
