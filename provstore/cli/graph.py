"""The graph of the chosen store or of a pack file, for commands that ask it."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from provstore.cli.console import Console
from provstore.cli.opening import packet_of, reading_store
from provstore.graph.index import Index
from provstore.graph.nodes import Node, node_named
from provstore.store.protocol import Reader
from provstore.verbs.refreshing import refresh


@contextmanager
def graph_of(out: Console, name: str) -> Iterator[tuple[Reader, Index, Node]]:
    """Find what a name stands for, bring the graph up to date, and close both afterwards."""
    node = node_named(name)
    with ExitStack() as opened:
        if node is not None:
            reader: Reader = opened.enter_context(reading_store(out))
        else:
            found = opened.enter_context(packet_of(out, name))
            reader, node = found.reader, Node("packet", found.packet.hex())
        refreshed = refresh(reader)
        opened.callback(refreshed.graph.close)
        for id, reason in refreshed.work.unread:
            out.note(f"not in the graph, because it cannot be read: {id}: {reason}")
        yield reader, refreshed.graph, node
