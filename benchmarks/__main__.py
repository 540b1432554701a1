"""Run every benchmark, or those named: ``python -m benchmarks fwht sincos``.

The comparison on tables takes hours and has options: ``python -m benchmarks tables --help``. It is
run where it is named, alone.
"""

import sys

from benchmarks import (
    bench_cluster,
    bench_commands,
    bench_convolution,
    bench_fwht,
    bench_import,
    bench_learner_costs,
    bench_map_limits,
    bench_maps,
    bench_mnist,
    bench_polynomial_error,
    bench_random,
    bench_ridge,
    bench_sincos,
    bench_single_row,
    bench_sketch_costs,
    bench_sketches,
    bench_svm,
    bench_svmlight,
    bench_table_files,
    bench_training,
)
from benchmarks.tables import comparison
from kernelmill import get_num_threads, runtime

ALL = {
    "fwht": bench_fwht.main,
    "convolution": bench_convolution.main,
    "sincos": bench_sincos.main,
    "random": bench_random.main,
    "maps": bench_maps.main,
    "map_limits": bench_map_limits.main,
    "single_row": bench_single_row.main,
    "sketches": bench_sketches.main,
    "sketch_costs": bench_sketch_costs.main,
    "polynomial_error": bench_polynomial_error.main,
    "ridge": bench_ridge.main,
    "learner_costs": bench_learner_costs.main,
    "training": bench_training.main,
    "mnist": bench_mnist.main,
    "svm": bench_svm.main,
    "svmlight": bench_svmlight.main,
    "table_files": bench_table_files.main,
    "cluster": bench_cluster.main,
    "import": bench_import.main,
    "commands": bench_commands.main,
}

if sys.argv[1:2] == ["tables"]:
    comparison.main(sys.argv[2:])
    sys.exit()
names = sys.argv[1:] or list(ALL)
unknown = [name for name in names if name not in ALL]
if unknown:
    sys.exit(f"Unknown benchmark {unknown[0]!r}; choose from: {', '.join([*ALL, 'tables'])}.")
print(f"instruction set {runtime.get_isa()}, {get_num_threads()} threads by default")
for name in names:
    ALL[name]()
