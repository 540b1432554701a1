"""Mutated files against kernelmill's readers: `python -m fuzzing --help`, or `make fuzz`.

Contents
--------
mutation
    Changes of bytes, of text and of JSON records, from a seed.
tables
    Tables of every format, and independent readers of them.
model_files
    Model files whose records and tensors are changed under a valid checksum.
checkpoints
    Checkpoints of training runs.
arrays
    Arrays of unusual layouts, and damaged sparse matrices.
soak
    Prediction and training for a long time, in many threads and forks.
faults
    Processes that are killed, full disks, clocks that jump, little memory.
campaign
    Runs of many mutations, and the files that failed.
"""
