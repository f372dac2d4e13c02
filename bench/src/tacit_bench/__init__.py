"""The scoreboard behind `tacit bench`: papers, missing labels, peers and scale, cell by cell.

`board.py` keeps the cells; `papers`, `missing`, `real`, `peers` and `scale` each say what a cell is
and measure one; `report` makes one page of all that was found.
"""
