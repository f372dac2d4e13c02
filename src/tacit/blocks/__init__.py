"""Blocks: the rows of a problem, wherever they live, and the four things one may do with them.

Everything we minimise is a sum over rows, so a method needs no more than

    blocks.map(f, *args)       apply f to each block; the results stay where the rows are
    blocks.sum(f, *args)       Σ f(block, *args), added up where the rows are
    blocks.zip(values)         (block, value) for each block, with a value of its own
    blocks.batches(size, rng)  the rows in random mini-batches, once each

and runs unchanged on rows in memory (`MemoryBlocks`, or `StreamedBlocks` where a GPU cannot hold
them all), on disk (`DiskBlocks`) and on a Dask cluster (`DaskBlocks`, in `tacit.blocks.dask`, so
that Dask may be absent).
"""

from tacit.blocks.disk import DiskBlocks as DiskBlocks
from tacit.blocks.disk import open_shards as open_shards
from tacit.blocks.disk import write_shards as write_shards
from tacit.blocks.memory import Blocks as Blocks
from tacit.blocks.memory import MemoryBlocks as MemoryBlocks
from tacit.blocks.memory import StreamedBlocks as StreamedBlocks
from tacit.blocks.rows import Rows as Rows
