"""Length scales by evidence, on a sample of the rows.

Contents
--------
map_scale
    One length scale, or gamma, of any map, together with the penalty.
length_scales
    A length scale for each column.
"""
