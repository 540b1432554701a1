"""The container: what is written and read, files that are no models, and failures half-way."""

import builtins
import errno
import hashlib
import json
import os
import pickle
import signal
import socket
import subprocess
import sys

import numpy as np
import pytest
import safetensors.numpy
from safetensors import safe_open

from kernelmill.files import ModelFileError, read_model_file, write_model_file

DTYPES = ["bool", "uint8", "uint16", "int32", "int64", "float16", "float32", "float64"]
RECORD = {"b": [1, 2.5, None, True, "é\n"], "a": {"nested": {"deep": [[-0.0, 1e-320]]}}}


def some_tensors():
    rng = np.random.default_rng(0)
    made = {f"t/{dtype}": (rng.uniform(size=(3, 5)) * 2).astype(dtype) for dtype in DTYPES}
    made |= {"empty": np.zeros((0, 4)), "scalar": np.array(2.5), "odd": np.arange(3, dtype="u1")}
    return made | {"turned": np.asfortranarray(np.arange(6.0).reshape(2, 3)), "big": np.arange(3.0)}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.kmill"


@pytest.fixture
def written(path):
    write_model_file(path, kind="example", record=RECORD, tensors=some_tensors())
    return path


def names_in(folder):
    return [each.name for each in folder.iterdir()]


def header_and_rest(content):
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def with_header(header, rest):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + rest


def with_record(path, record, tensors=None, **metadata):
    """A file of this record text, with a checksum that is right."""
    write_model_file(path, kind="example", record={}, tensors=tensors or {})
    header, rest = header_and_rest(path.read_bytes())
    fields = {**header["__metadata__"], "record": record, **metadata}
    state = hashlib.sha256()
    for piece in (fields["kernelmill"], fields["kind"], record):
        state.update(len(piece.encode()).to_bytes(8, "little") + piece.encode())
    header["__metadata__"] = {**fields, "sha256": state.hexdigest()}
    text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    path.write_bytes(with_header(text + b" " * (-len(text) % 8), rest))


def refused(path, match):
    with pytest.raises(ModelFileError, match=match) as caught:
        read_model_file(path)
    assert repr(os.fspath(path)) in str(caught.value)
    assert str(caught.value).endswith(".")


class TestRoundTrip:
    def test_everything_comes_back(self, written):
        file = read_model_file(written)
        assert (file.kind, file.format_version) == ("example", 1)
        assert file.record == RECORD
        assert str(file.record) == str(dict(sorted(RECORD.items())))  # -0.0 too
        tensors = some_tensors()
        assert set(file.tensors) == set(tensors)
        for name, tensor in tensors.items():
            found = file.tensors[name]
            assert (found.dtype, found.shape) == (tensor.dtype, tensor.shape)
            assert found.tobytes() == tensor.tobytes()
            assert found.flags.aligned
            assert found.flags.writeable

    def test_the_library_of_safetensors_reads_it(self, written):
        found = safetensors.numpy.load_file(written)
        for name, tensor in some_tensors().items():
            np.testing.assert_array_equal(found[name], tensor)
        with safe_open(written, "np") as file:
            assert file.metadata()["kind"] == "example"
            assert json.loads(file.metadata()["record"]) == RECORD

    def test_same_content_same_bytes(self, written, tmp_path):
        turned = dict(reversed(some_tensors().items()))
        swapped = {name: t.astype(t.dtype.newbyteorder(">")) for name, t in turned.items()}
        for number, tensors in enumerate((turned, swapped)):
            other = tmp_path / f"{number}"
            record = dict(reversed(RECORD.items()))
            write_model_file(other, kind="example", record=record, tensors=tensors)
            assert other.read_bytes() == written.read_bytes()

    def test_the_checksum_is_as_documented(self, path):
        w = np.arange(6, dtype=np.float32).reshape(2, 3)
        write_model_file(path, kind="k", record={"a": 1}, tensors={"w": w})
        pieces = [b"1", b"k", b'{"a":1}', b"w", b"F32", b"2,3", w.tobytes()]
        state = hashlib.sha256(b"".join(len(p).to_bytes(8, "little") + p for p in pieces))
        header, _ = header_and_rest(path.read_bytes())
        assert header["__metadata__"]["sha256"] == state.hexdigest()


class TestWhatCannotBeWritten:
    @pytest.mark.parametrize(
        "bad",
        [
            {"a": np.nan},
            {"a": [np.inf]},
            {"a": np.float64(1)},
            {"a": (1,)},
            {1: 2},
            {"a": b"x"},
            {"a": 2**64},
            {"a": object()},
            {"a": "\ud800"},
        ],
    )
    def test_records(self, path, bad):
        with pytest.raises(ModelFileError, match="record"):
            write_model_file(path, kind="example", record=bad, tensors={})
        assert not path.exists()

    def test_deep_records(self, path):
        deep = []
        for _ in range(100_000):
            deep = [deep]
        with pytest.raises(ModelFileError, match="levels"):
            write_model_file(path, kind="example", record={"a": deep}, tensors={})
        del deep

    @pytest.mark.parametrize(
        "tensors",
        [
            {"a": np.zeros(2, complex)},
            {"a": np.zeros(2, object)},
            {"a": np.zeros(2, "U3")},
            {"a": np.zeros(2, "int8")},
            {"a": [1.0]},
            {"": np.zeros(2)},
            {"__metadata__": np.zeros(2)},
            {"a b": np.zeros(2)},
            {"ä": np.zeros(2)},
            {"a\n": np.zeros(2)},
            {"a" * 201: np.zeros(2)},
            {"a": np.zeros((1,) * 9)},
        ],
    )
    def test_tensors(self, path, tensors):
        with pytest.raises(ModelFileError, match=r"[Tt]ensor"):
            write_model_file(path, kind="example", record={}, tensors=tensors)
        assert not path.exists()

    def test_records_that_are_too_large(self, path):
        with pytest.raises(ModelFileError, match="at most 256 MiB"):
            write_model_file(path, kind="example", record={"a": "x" * (1 << 28)}, tensors={})

    def test_a_tensor_with_the_name_of_the_record(self, path):
        with pytest.raises(ModelFileError, match="is taken"):
            write_model_file(path, kind="example", record={}, tensors={"record": np.zeros(2)})

    @pytest.mark.parametrize("kind", ["", "a b", 5, None, "ä", "-"])
    def test_kinds(self, path, kind):
        with pytest.raises(ModelFileError, match="kind"):
            write_model_file(path, kind=kind, record={}, tensors={})


class TestReplacing:
    """An old file survives whatever happens before the new one is complete."""

    @staticmethod
    def write(path, number=1):
        write_model_file(path, kind="example", record={"n": number}, tensors={"w": np.ones(9)})

    def test_replaces(self, path):
        self.write(path, 1)
        self.write(path, 2)
        assert read_model_file(path).record == {"n": 2}
        assert names_in(path.parent) == [path.name]

    @pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt()])
    @pytest.mark.parametrize("function", ["fsync", "replace"])
    def test_failures(self, path, monkeypatch, error, function):
        self.write(path, 1)

        def fail(*_):
            raise error

        monkeypatch.setattr(os, function, fail)
        monkeypatch.setattr("pathlib.Path.replace", fail)
        with pytest.raises(type(error)):
            self.write(path, 2)
        monkeypatch.undo()
        assert read_model_file(path).record == {"n": 1}
        assert names_in(path.parent) == [path.name]

    def test_failures_of_writing(self, path, monkeypatch):
        self.write(path, 1)
        real = builtins.open

        class Full:
            def __init__(self, file):
                self.file = file

            def __enter__(self):
                return self

            def __exit__(self, *_):
                self.file.close()

            def write(self, part):
                self.file.write(part[:4])
                raise OSError(errno.ENOSPC, "full")

        monkeypatch.setattr(builtins, "open", lambda *args: Full(real(*args)))
        with pytest.raises(OSError, match="full"):
            self.write(path, 2)
        monkeypatch.undo()
        assert read_model_file(path).record == {"n": 1}
        assert names_in(path.parent) == [path.name]

    def test_ctrl_c_in_another_process(self, path):
        self.write(path, 1)
        code = (
            "import os, sys, signal, numpy as np\n"
            "from kernelmill.files import write_model_file\n"
            "real = os.fsync\n"
            "def fsync(descriptor):\n"
            "    os.kill(os.getpid(), signal.SIGINT)\n"
            "    real(descriptor)\n"
            "os.fsync = fsync\n"
            "write_model_file(sys.argv[1], kind='example', record={}, tensors={'w': np.ones(9)})\n"
        )
        run = subprocess.run(
            [sys.executable, "-c", code, path], capture_output=True, timeout=300, check=False
        )
        assert run.returncode in (1, -signal.SIGINT, 130)
        assert b"KeyboardInterrupt" in run.stderr
        assert read_model_file(path).record == {"n": 1}
        assert names_in(path.parent) == [path.name]

    @pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
    def test_permissions(self, path, mask):
        before = os.umask(mask)
        try:
            self.write(path)
        finally:
            os.umask(before)
        assert path.stat().st_mode & 0o777 == 0o666 & ~mask

    def test_links_are_followed(self, path, tmp_path):
        (tmp_path / "elsewhere").mkdir()
        target = tmp_path / "elsewhere" / "real.kmill"
        path.symlink_to(target)  # to nothing yet
        for number in (1, 2):
            self.write(path, number)
            assert path.is_symlink()
            assert read_model_file(target).record == {"n": number}
        assert names_in(target.parent) == ["real.kmill"]

    def test_names_as_long_as_can_be(self, tmp_path):
        self.write(tmp_path / ("x" * 255))
        assert read_model_file(tmp_path / ("x" * 255)).record == {"n": 1}

    def test_targets_that_are_no_files(self, tmp_path):
        with pytest.raises(IsADirectoryError, match="folder"):
            self.write(tmp_path)
        with pytest.raises(FileNotFoundError, match="create"):
            self.write(tmp_path / "none" / "model")
        with pytest.raises(ValueError, match="path of a file"):
            self.write("")
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(ValueError, match="device or a pipe"):
            self.write(tmp_path / "pipe")


class TestOtherFiles:
    @pytest.mark.parametrize(
        ("content", "match"),
        [
            (b"", "empty.*save the model again"),
            (pickle.dumps([1, 2, 3]), "pickle"),
            (pickle.dumps(np.ones(100), 2), "pickle"),
            (b"\x89PNG\r\n\x1a\n" + bytes(1000), "image"),
            (b"PK\x03\x04" + bytes(1000), "ZIP"),
            (b"\x1f\x8b\x08" + bytes(1000), "gzip"),
            (b"age,income\n39,77516\n" * 100, "text file"),
            (b"hi", "text file"),
            (b"\x93NUMPY" + bytes(100), "NumPy"),
            (bytes(1000), "not a kernelmill model file"),
            (bytes(9), "not a kernelmill model file"),
            (b"\xff" * 1000, "pass a file"),
            ((2).to_bytes(8, "little") + b"{}", "another program"),
            ((2).to_bytes(8, "little") + b"[]", "not a kernelmill model file"),
            (
                safetensors.numpy.save({"w": np.ones(3)}),
                "safetensors file that another program wrote",
            ),
            (safetensors.numpy.save({"w": np.ones(3)}, {"a": "b"}), "another program"),
        ],
    )
    def test_of_other_kinds(self, path, content, match):
        path.write_bytes(content)
        refused(path, match)

    def test_no_files(self, tmp_path, monkeypatch):
        refused(tmp_path, "folder")
        os.mkfifo(tmp_path / "pipe")
        refused(tmp_path / "pipe", "pipe")
        with socket.socket(socket.AF_UNIX) as opened:
            monkeypatch.chdir(tmp_path)  # names of sockets are short
            opened.bind("socket")
            refused(tmp_path / "socket", "pipe")
        with pytest.raises(FileNotFoundError, match="there is no model file"):
            read_model_file(tmp_path / "missing")

    @pytest.mark.parametrize("version", ["3", "4", "999999999"])
    def test_newer_versions(self, written, version):
        header, rest = header_and_rest(written.read_bytes())
        header["__metadata__"] = {"kernelmill": version, "something": "else"}
        written.write_bytes(with_header(header, rest + b"more"))
        refused(written, rf"newer kernelmill \(format {version}, and .* up to 2\); upgrade")

    @pytest.mark.parametrize("version", ["0", "-1", "1.0", "", "01", "x", "1" * 5000, "१"])
    def test_senseless_versions(self, written, version):
        header, rest = header_and_rest(written.read_bytes())
        header["__metadata__"]["kernelmill"] = version
        written.write_bytes(with_header(header, rest))
        refused(written, "damaged or was changed")


class TestHostileHeaders:
    @pytest.mark.parametrize(
        "change",
        [
            lambda h: h["big"].update(dtype="F128"),
            lambda h: h["big"].update(dtype=5),
            lambda h: h["big"].update(shape=[-3]),
            lambda h: h["big"].update(shape=[10**18, 10**18]),
            lambda h: h["big"].update(shape=[3.0]),
            lambda h: h["big"].update(shape="3"),
            lambda h: h["big"].update(shape=[1] * 100 + [3]),
            lambda h: h["big"].update(data_offsets=[0, 2**63]),
            lambda h: h["big"].update(data_offsets=[24, 0]),
            lambda h: h["big"].update(data_offsets=[-24, 0]),
            lambda h: h["big"].update(data_offsets=[8, 32]),
            lambda h: h["big"].update(data_offsets=[0]),
            lambda h: h["big"].update(extra=1),
            lambda h: h["big"].pop("shape"),
            lambda h: h.update(big=None),
            lambda h: h.pop("big"),
            lambda h: h.update({"../up": h.pop("big")}),
            lambda h: h.update({"..": h.pop("big")}),
            lambda h: h.update(big=h["scalar"]),
            lambda h: h["__metadata__"].update(extra="1"),
            lambda h: h["__metadata__"].update(kind=5),
            lambda h: h["__metadata__"].update(kind="other"),
            lambda h: h["__metadata__"].update(sha256="0" * 64),
            lambda h: h["__metadata__"].update(record="{}"),
            lambda h: h["__metadata__"].pop("record"),
        ],
    )
    def test_changed_fields(self, written, change):
        header, rest = header_and_rest(written.read_bytes())
        change(header)
        text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
        written.write_bytes(with_header(text + b" " * (-len(text) % 8), rest))
        refused(written, "damaged or was changed")

    @pytest.mark.parametrize(
        "text",
        [
            b"{" * 1_000_000,
            b'{"a":' * 1_000_000,
            b'{"a":' + b"[" * 1_000_000,
            b'{"a":1,"a":1}',
            b'{"a":NaN}',
            b'{"a":' + b"9" * 100_000 + b"}",
            b'{"a":1e999}',
            b'{"\xff":1}',
            b'{"\\ud800":1}',
            b"{}  x",
        ],
    )
    def test_senseless_json(self, path, text):
        path.write_bytes(with_header(text, b""))
        refused(path, "damaged or was changed")

    def test_other_spellings(self, written):
        header, rest = header_and_rest(written.read_bytes())
        written.write_bytes(with_header(json.dumps(header, indent=1).encode(), rest))
        refused(written, "does not have the form that kernelmill writes")

    def test_headers_that_are_too_large(self, path):
        path.write_bytes(with_header(b"{" + b" " * (1 << 24) + b"}", b""))
        refused(path, "damaged")

    def test_huge_sparse_files(self, path):
        n = 2**37
        header = {
            "w": {"dtype": "F64", "shape": [n], "data_offsets": [0, 8 * n]},
            "__metadata__": {"kernelmill": "1", "kind": "a", "record": "{}", "sha256": "0"},
        }
        text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
        content = with_header(text + b" " * (-len(text) % 8), b"")
        path.write_bytes(content)
        try:
            os.truncate(path, len(content) + 8 * n)
        except OSError:
            pytest.skip("no sparse files of a terabyte here")
        refused(path, "GiB")


class TestHostileRecords:
    """With a checksum that is right: it is no protection against whoever can compute one."""

    def test_the_method(self, path):
        with_record(path, '{"a":1}')
        assert read_model_file(path).record == {"a": 1}

    @pytest.mark.parametrize(
        "record",
        [
            "",
            "[]",
            "null",
            "{",
            '{"a":NaN}',
            '{"a":-Infinity}',
            '{"a":1e999}',
            '{"a":1,"a":2}',
            '{"b":1,"a":2}',
            '{"a": 1}',
            '{"a":1.00}',
            '{"a":' + "9" * 10_000 + "}",
            '{"a":' + "9" * 30 + "}",
            '{"a":' + "[" * 50 + "]" * 50 + "}",
            '{"a":' + "[" * 100_000 + "]" * 100_000 + "}",
            '{"a":' * 100_000 + "1" + "}" * 100_000,
            '{"a":"\\ud800"}',
            "\ufeff{}",
            "{}\0",
        ],
    )
    def test_records(self, path, record):
        with_record(path, record)
        refused(path, "damaged or was changed")

    def test_kinds(self, path):
        with_record(path, "{}", kind="../../a b")
        refused(path, "kind")


@pytest.mark.parametrize("shape", [[0, 2**61], [2**61, 0, 2**61], [0, 2**47, 4]])
def test_empty_tensors_of_absurd_shapes(path, shape):
    """NumPy limits the product of dimensions even where one of them is zero."""
    write_model_file(path, kind="example", record={}, tensors={"t": np.zeros((0, 1))})
    header, rest = header_and_rest(path.read_bytes())
    header["t"]["shape"] = shape
    path.write_bytes(with_header(header, rest))
    with pytest.raises(ModelFileError, match="invalid shape"):
        read_model_file(path)


def test_long_records_are_tensors(path):
    record = {"a": "x" * (17 << 20)}
    write_model_file(path, kind="example", record=record, tensors={"t": np.arange(3.0)})
    file = read_model_file(path)
    assert (file.format_version, file.record, list(file.tensors)) == (2, record, ["t"])
    content = bytearray(path.read_bytes())
    content[-1000] ^= 1
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match="checksum"):
        read_model_file(path)


@pytest.mark.parametrize("change", ["inline", "absent", "dtype", "ascii", "spelling"])
def test_records_as_tensors_are_checked(path, monkeypatch, change):
    monkeypatch.setattr("kernelmill.files.model_file._MAX_INLINE", 1)
    write_model_file(path, kind="example", record={"a": 1}, tensors={})
    content = b'{"a":1}'
    assert read_model_file(path).record == {"a": 1}
    assert path.read_bytes().endswith(content)
    stored = {
        "absent": {"other": np.frombuffer(content, np.uint8)},
        "dtype": {"record": np.zeros(4, np.uint16)},
        "ascii": {"record": np.frombuffer(b"\xff" + content[1:], np.uint8)},
        "spelling": {"record": np.frombuffer(b'{"a": 1}', np.uint8)},
    }.get(change, {"record": np.frombuffer(content, np.uint8)})
    monkeypatch.setattr("kernelmill.files.model_file._MAX_INLINE", 1 << 20)
    monkeypatch.setattr("kernelmill.files.model_file._FIRST_VERSION", 2)
    monkeypatch.setattr("kernelmill.files.model_file._RECORD", "unused")
    text = "{}" if change == "inline" else ""
    monkeypatch.setattr("kernelmill.files.model_file.canonical_json", lambda _: text)
    write_model_file(path, kind="example", record={}, tensors=stored)
    monkeypatch.undo()
    with pytest.raises(ModelFileError, match="record"):
        read_model_file(path)


def test_files_that_cannot_be_read():
    with pytest.raises(ModelFileError, match=r"mem' cannot be read: input/output error"):
        read_model_file("/proc/self/mem")
