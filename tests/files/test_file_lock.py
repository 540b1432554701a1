"""Locks of files that one training run writes."""

import os
import signal
import threading
from pathlib import Path

import numpy as np
import pytest

from kernelmill import KernelRegressor, fit_table
from kernelmill.errors import ArgumentError
from kernelmill.files.atomic_file import FileLock

X = np.random.default_rng(0).normal(size=(60, 2))


def test_a_lock_ends_with_its_process(tmp_path):
    lock = FileLock(tmp_path / "file")
    child = os.fork()
    if child == 0:
        os._exit(0 if FileLock(tmp_path / "file").acquire() else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert lock.acquire()
    lock.release()
    assert list(tmp_path.iterdir()) == []


def test_a_child_does_not_keep_a_lock(tmp_path):
    lock = FileLock(tmp_path / "file")
    assert lock.acquire()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.read(reading, 1)  # until the test is over
        os._exit(0)
    lock.release()
    assert FileLock(tmp_path / "file").acquire()
    os.write(writing, b"x")
    os.waitpid(child, 0)


@pytest.mark.parametrize("ending", ["killed", "copied"])
def test_a_child_has_no_lock_of_its_parent(tmp_path, ending):
    """Neither does a child keep the lock of a parent that is killed, nor can it release it."""
    lock = FileLock(tmp_path / "file")
    if ending == "copied":
        assert lock.acquire()
        child = os.fork()
        if child == 0:
            lock.release()
            os._exit(0)
        os.waitpid(child, 0)
        assert not FileLock(tmp_path / "file").acquire()
        return
    reading, writing = os.pipe()
    holder = os.fork()
    if holder == 0:
        lock.acquire()
        os.close(reading)
        if os.fork() == 0:
            os.write(writing, b"x")
            signal.pause()
        signal.pause()
    os.close(writing)
    os.read(reading, 1)
    grandchild = int(Path(f"/proc/{holder}/task/{holder}/children").read_text())
    try:
        assert not FileLock(tmp_path / "file").acquire()
        os.kill(holder, signal.SIGKILL)
        os.waitpid(holder, 0)
        assert FileLock(tmp_path / "file").acquire()
    finally:
        os.kill(grandchild, signal.SIGKILL)


def test_where_no_lock_can_be_made_everybody_has_it(tmp_path):
    assert FileLock(tmp_path / "no folder" / "file").acquire()


@pytest.mark.parametrize("fit", ["estimator", "table"])
def test_one_run_at_a_time_writes_a_checkpoint(tmp_path, fit):
    path = tmp_path / "state"

    def train():
        if fit == "estimator":
            return KernelRegressor(checkpoint=path, random_state=0).fit(X, X[:, 0])
        return fit_table((X, X[:, 0]), tune=False, n_components=16, checkpoint=path)

    other = FileLock(path)
    assert other.acquire()
    with pytest.raises(ArgumentError, match="another training run is writing it") as caught:
        train()
    assert "state" in str(caught.value)
    other.release()
    train()
    assert FileLock(path).acquire()  # it is free again


def test_threads_have_locks_of_their_own(tmp_path):
    lock = FileLock(tmp_path / "file")
    assert lock.acquire()
    found = []
    thread = threading.Thread(target=lambda: found.append(FileLock(tmp_path / "file").acquire()))
    thread.start()
    thread.join()
    assert found == [False]
    lock.release()


@pytest.mark.parametrize("exists", [True, False])
def test_a_file_has_one_lock_however_it_is_reached(tmp_path, exists):
    (tmp_path / "folder").mkdir()
    path, link = tmp_path / "folder" / "file", tmp_path / "link"
    if exists:
        path.touch()
    link.symlink_to("folder/file")
    lock = FileLock(link)
    assert lock.acquire()
    assert not FileLock(path).acquire()
    assert not FileLock(tmp_path / "folder" / ".." / "link").acquire()
    with pytest.raises(ArgumentError, match="another training run is writing it"):
        KernelRegressor(checkpoint=path, random_state=0).fit(X, X[:, 0])
    lock.release()
    assert FileLock(path).acquire()
