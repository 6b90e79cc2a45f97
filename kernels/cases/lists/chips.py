"""What is measured on a second GPU too."""
from lists.own_forward import flash2, hopper, persistent
from lists.own_kernels import fits
from lists.own_other import other, softmax


def chips(of, step):
    """What is measured on a second GPU too: every so many cases of a list that the first GPU has measured."""
    return of[::step]


def own():
    rows = []
    for of, step in ((flash2, 9), (hopper, 6), (other, 5), (softmax, 8), (persistent, 5)):
        rows += chips([row for row in of() if fits(row)], step)
    return rows
