"""Arrays on their way into the native core: blocks of rows, and coefficients in their precision."""
