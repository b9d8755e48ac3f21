"""Files as liballprof writes them."""

from hopmap.traces.sources import open_source

HEAD = "# htor's PMPI Tracer 1.0 Output File\n# clockdiff: 0.0 s (relative to rank 0)\n\n"
INT, WORLD = "1,4,4", 6000


class Rank:
    """Writes the calls of a rank, one a microsecond."""

    def __init__(self, rank, ranks, ahead=0):
        self.rank, self.ranks, self.time = rank, ranks, 1_237_666_046_950_106 + ahead
        self.lines = [f"MPI_Init:-:1:2:{self.time}.000000"]

    def comm(self, handle=WORLD, rank=None, size=None):
        own = self.rank if rank is None else rank
        return f"{handle},{own},{self.ranks if size is None else size}"

    def call(self, name, *arguments):
        begin, self.time = self.time + 1, self.time + 2
        text = ":".join(map(str, arguments))
        self.lines.append(f"MPI_{name}:{begin}.000000:{text}:{self.time}.000000")
        return self

    def send(self, peer, count, tag=0, name="Send", comm=None, request=None):
        rest = [] if request is None else [request]
        return self.call(name, 7, count, INT, peer, tag, comm or self.comm(), *rest)

    def recv(self, peer, count, tag=0, name="Recv", comm=None, request=99):
        return self.call(name, 7, count, INT, peer, tag, comm or self.comm(), request)

    def text(self):
        return HEAD + "\n".join([*self.lines, f"MPI_Finalize:{self.time + 1}.000000:-"]) + "\n"


def write(folder, ranks):
    for rank in ranks:
        (folder / f"trace-{rank.rank}.txt").write_text(rank.text())
    return open_source(folder)


def read(folder, ranks):
    source = write(folder, ranks)
    assert source.kind == "recording"
    return source.trace()
