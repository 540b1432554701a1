"""Maps at run time: memory, few rows, threads, forks, interrupts."""

import multiprocessing
import os
import subprocess
import sys
import textwrap
import threading
import warnings

import numpy as np
import pandas as pd
import pytest

from kernelmill import DotProductFastfood, Fastfood, GaussianTemplates, RandomFourier

MAPS = {
    "hadamard": "Fastfood(n_components=1024, random_state=0)",
    "hadamard complex": "Fastfood(n_components=512, features='complex', random_state=0)",
    "sorf": "Fastfood(n_components=1024, structure='sorf', random_state=0)",
    "dct": "Fastfood(n_components=1024, structure='dct', random_state=0)",
    "fft": "Fastfood(n_components=1024, structure='fft', random_state=0)",
    "dense": "RandomFourier(n_components=1024, random_state=0)",
    "dense drawn again": "RandomFourier(n_components=1024, store_matrix=False, random_state=0)",
    "templates": "GaussianTemplates(n_components=1024, random_state=0)",
    "sphere": "DotProductFastfood(n_components=1024, random_state=0)",
}


def run(code, *arguments):
    command = [sys.executable, "-c", textwrap.dedent(code), *arguments]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout.split()


def test_peak_memory_is_little_more_than_the_output():
    code = """
        import sys
        import numpy as np
        import scipy.sparse as sp
        from kernelmill import DotProductFastfood, Fastfood, GaussianTemplates, RandomFourier

        def peak():
            with open("/proc/self/status") as status:
                return next(int(l.split()[1]) for l in status if l.startswith("VmHWM")) / 1024

        def resident():
            with open("/proc/self/status") as status:
                return next(int(l.split()[1]) for l in status if l.startswith("VmRSS")) / 1024

        X = np.random.default_rng(0).standard_normal((4000, 64))  # 2 MiB
        forms = [X, np.asfortranarray(X), sp.csr_array(X)]
        for make in sys.argv[1:]:
            fitted = eval(make).fit(X)
            for form in forms:
                fitted.transform(form[:200])  # start everything
                open("/proc/self/clear_refs", "w").write("5")  # the peak starts anew
                before = resident()
                out = fitted.transform(form)
                print(peak() - before - out.nbytes / 2**20)
                del out
    """
    if not os.access("/proc/self/clear_refs", os.W_OK):
        pytest.skip("this system does not let a process reset its peak")
    # The output takes 31 MiB. scikit-learn's test for finite numbers may take a part of the input.
    scratch = [float(s) for s in run(code, *MAPS.values())]
    assert len(scratch) == 3 * len(MAPS)
    assert max(scratch) < 16, scratch


class TestFewRows:
    """Up to 16 rows bypass scikit-learn's checks."""

    def test_same_as_with_all_checks(self, feature_map, points, same_bits, monkeypatch):
        X = points(16, 5)
        feature_map.fit(points(30, 5))
        short = [feature_map.transform(X[:n].astype(t)) for n in (1, 16) for t in ("f4", "f8")]
        monkeypatch.setattr(type(feature_map), "_is_plain", lambda self, X: False)
        long = [feature_map.transform(X[:n].astype(t)) for n in (1, 16) for t in ("f4", "f8")]
        for first, second in zip(short, long, strict=True):
            same_bits(first, second)

    @pytest.mark.parametrize("make", [RandomFourier, Fastfood])
    def test_errors_are_the_same(self, make, monkeypatch):
        fitted = make().fit(np.eye(5))
        bad = [np.full((1, 5), np.nan), np.full((1, 5), -np.inf), np.ones((1, 4)), np.ones(5)]
        bad += [np.ones((1, 6), np.float32), np.empty((0, 5)), np.ones((1, 1, 5))]

        def messages():
            for X in bad:
                with pytest.raises(ValueError) as caught:  # noqa: PT011 # compared below
                    fitted.transform(X)
                yield str(caught.value)

        short = list(messages())
        monkeypatch.setattr(make, "_is_plain", lambda self, X: False)
        assert short == list(messages())

    @pytest.mark.parametrize("make", [RandomFourier, Fastfood])
    def test_warns_about_missing_names(self, make, same_bits):
        frame = pd.DataFrame(np.eye(3), columns=["a", "b", "c"])
        fitted = make(random_state=0).fit(frame)
        with pytest.warns(UserWarning, match="does not have valid feature names"):
            Z = fitted.transform(np.eye(3))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            same_bits(fitted.transform(frame), Z)
        with pytest.raises(ValueError, match="feature names should match"):
            fitted.transform(frame[["b", "a", "c"]])

    @pytest.mark.parametrize("make", [RandomFourier, Fastfood])
    def test_subclasses_of_arrays_are_checked(self, make):
        fitted = make().fit(np.eye(3))
        with pytest.raises(TypeError, match="mask would be lost"):
            fitted.transform(np.ma.masked_array([[1.0, np.nan, 2.0]]))


def test_python_threads_share_a_map(feature_map, points):
    X = points(300, 20)
    feature_map.set_params(n_components=200).fit(X[:5].astype(np.float32))  # float64 is drawn late
    parts = [X[25 * i : 25 * i + 100] for i in range(8)]
    results = [None] * 8
    start = threading.Barrier(8)

    def work(i):
        start.wait()
        results[i] = {feature_map.transform(parts[i]).tobytes() for _ in range(5)}

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [{feature_map.transform(part).tobytes()} for part in parts]


# Python 3.12 and newer warn about any fork with threads about.
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("make", MAPS.values(), ids=MAPS.keys())
def test_forked_children(make, points, same_bits):
    X = points(500, 20)
    makers = (DotProductFastfood, Fastfood, GaussianTemplates, RandomFourier)
    names = {maker.__name__: maker for maker in makers}
    fitted = eval(make, names).set_params(n_threads=2).fit(X)
    Z = fitted.transform(X)  # the pool is running
    with multiprocessing.get_context("fork").Pool(2) as pool:
        for result in pool.map_async(fitted.transform, [X, X]).get(timeout=300):
            same_bits(result, Z)
    same_bits(fitted.transform(X), Z)


def test_interrupt():
    code = """
        import os, signal, sys, threading
        import numpy as np
        from kernelmill import Fastfood, RandomFourier

        X = np.broadcast_to(np.ones(1024, np.float32), (1 << 19, 1024))  # seconds of work
        for make in sys.argv[1:]:
            fitted = eval(make).set_params(n_components=64).fit(X[:1])
            fitted.transform(X[:100])
            layout, out = fitted._layout, np.full((1 << 19, 64), np.nan, np.float32)
            try:
                threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
                fitted.projection_.features(X, layout, None, out, 1)
                print("finished")
            except KeyboardInterrupt:
                print("interrupted" if np.isnan(out).any() else "finished")
    """
    names = ["hadamard", "sorf", "dct", "dense", "dense drawn again"]
    assert run(code, *(MAPS[name] for name in names)) == ["interrupted"] * len(names)
