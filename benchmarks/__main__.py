"""Run every benchmark, or those named: ``python -m benchmarks fwht sincos``.

The comparison on tables takes hours and runs only if it is named: ``python -m benchmarks tables``.
"""

import sys

from benchmarks import (
    bench_cluster,
    bench_commands,
    bench_files,
    bench_learner_costs,
    bench_maps,
    bench_mnist,
    bench_ridge,
    bench_sketches,
    bench_svm,
    bench_training,
    bench_transforms,
)
from benchmarks.tables import comparison
from kernelmill import get_num_threads, runtime

ALL = {
    "fwht": bench_transforms.bench_fwht,
    "convolution": bench_transforms.bench_convolution,
    "sincos": bench_transforms.bench_sincos,
    "maps": bench_maps.bench_maps,
    "map_limits": bench_maps.bench_map_limits,
    "single_row": bench_maps.bench_single_row,
    "sketches": bench_sketches.bench_sketches,
    "sketch_costs": bench_sketches.bench_sketch_costs,
    "ridge": bench_ridge.main,
    "learner_costs": bench_learner_costs.main,
    "training": bench_training.main,
    "mnist": bench_mnist.main,
    "svm": bench_svm.main,
    "svmlight": bench_files.bench_svmlight,
    "table_files": bench_files.bench_table_files,
    "cluster": bench_cluster.main,
    "import": bench_commands.bench_import,
    "commands": bench_commands.bench_commands,
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
