"""From files to models, predictions and evaluations: what the command line does, in Python."""
