"""The error of model files."""

__all__ = ["ModelFileError"]


class ModelFileError(ValueError):
    """A file is not a model that can be loaded, or a model is not one that a file can hold.

    The message names the file or the parameter, and what to do.

    Examples
    --------
    >>> from kernelmill.storage import ModelFileError
    >>> issubclass(ModelFileError, ValueError)
    True
    """
