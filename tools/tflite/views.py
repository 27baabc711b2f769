"""How a tensor of ONNX lies in a tensor of LiteRT.

Transposing and reshaping only changes a view where it can: images stay as LiteRT's kernels want them,
channels last, and nothing is moved before an operator needs it moved.
"""

from dataclasses import dataclass
from math import prod


@dataclass(frozen=True)
class View:
    """`shape`: of LiteRT's tensor. Its extents are split into `factors`, all above 1, in the order in
    which they lie in memory; each axis of the ONNX tensor is made of some of them, which `axes` names
    by their indices, the major one first."""

    tensor: int
    shape: tuple
    factors: tuple
    axes: tuple

    @staticmethod
    def of(tensor, shape, order=None):
        """The axes of the ONNX tensor lie in this order, by default in their own."""
        order = range(len(shape)) if order is None else order
        factors, axes = [], [()] * len(shape)
        for extent, axis in zip(shape, order):
            if extent > 1:
                axes[axis] = (len(factors),)
                factors.append(extent)
        return View(tensor, tuple(shape), tuple(factors), tuple(axes))

    @property
    def dims(self):
        """The shape of the ONNX tensor."""
        return tuple(prod(self.factors[f] for f in axis) for axis in self.axes)

    def on(self, tensor):
        """The same view of another tensor."""
        return View(tensor, self.shape, self.factors, self.axes)

    def transposed(self, order):
        return View(self.tensor, self.shape, self.factors, tuple(self.axes[a] for a in order))

    def reshaped(self, dims):
        """None if the new extents cannot be made of parts of the old ones."""
        pending = [(f, self.factors[f]) for axis in self.axes for f in axis]
        pending.reverse()
        parts = [[] for _ in self.factors]
        axes = []
        for extent in dims:
            axis = []
            while extent > 1:
                f, size = pending.pop()
                if extent % size == 0:
                    taken = size
                elif size % extent == 0:
                    taken = extent
                    pending.append((f, size // extent))
                else:
                    return None
                axis.append((f, len(parts[f])))
                parts[f].append(taken)
                extent //= taken
            axes.append(axis)
        begin = [sum(map(len, parts[:f])) for f in range(len(parts))]
        return View(
            self.tensor,
            self.shape,
            tuple(size for part in parts for size in part),
            tuple(tuple(begin[f] + i for f, i in axis) for axis in axes),
        )

    def order(self):
        """An order of the axes in which they lie in memory, or, if parts of them are in each other's
        way, nearly so."""
        dims = self.dims
        wide = sorted((a for a in range(len(dims)) if dims[a] > 1), key=lambda a: min(self.axes[a]))
        narrow = [a for a in range(len(dims)) if dims[a] == 1]
        if len(self.shape) == len(dims) and [e for e in self.shape if e > 1] == [dims[a] for a in wide]:
            wide, narrow = iter(wide), iter(narrow)
            return [next(wide) if extent > 1 else next(narrow) for extent in self.shape]
        # Those of extent 1 stay beside their neighbours.
        order = list(wide)
        for a in narrow:
            order.insert(order.index(a - 1) + 1 if a > 0 else 0, a)
        return order

    def extents(self):
        """For each extent of `shape`, the factors that it is made of."""
        parts, f = [], 0
        for extent in self.shape:
            part = []
            while extent > 1:
                part.append(f)
                extent //= self.factors[f]
                f += 1
            parts.append(tuple(part))
        return parts
