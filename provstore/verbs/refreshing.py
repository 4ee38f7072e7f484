"""Bringing the graph index of a store up to date; one in memory where nothing can be kept."""

from typing import Final, Literal, NamedTuple

from provstore.errors import ReadOnlyError, StoreDamagedError, StoreFullError
from provstore.graph import deriving
from provstore.graph.documents.reading import VERSIONS, understand
from provstore.graph.index import Index
from provstore.graph.memory import MemoryIndex
from provstore.ids import RawId, to_raw
from provstore.store import graph_index, graph_rows
from provstore.store.moment import Moment
from provstore.store.protocol import Reader
from provstore.verbs.keeping import is_here
from provstore.verbs.relating import Relating, Understand, Work

READERS: Final = " ".join((deriving.VERSION, *(f"{name}:{VERSIONS[name]}" for name in sorted(VERSIONS))))
"""Everything that derives relations, with versions; another one makes every index anew."""


class Refreshed(NamedTuple):
    """An index that knows everything the store has, and the work it took.

    Attributes:
        graph: the index; close it after use.
        work: what was done for it.
    """

    graph: Index
    work: Work


def refresh(reader: Reader, read: Understand = understand, *, readers: str = READERS) -> Refreshed:
    """Return an index of the graph of a store or a pack.

    The one beside a store is brought up to date, or made anew where it is absent, damaged, of other readers,
    or knows what was swept since. Where it cannot be written, one that is up to date is used, else one is
    made in memory.

    Args:
        reader: store or pack.
        read: reads documents.
        readers: who derives relations; another text makes the index anew.

    Raises:
        StoreBusyError: another process brings it up to date and does not finish in time.
        StoreDamagedError, InputOutputError: the store cannot be read.
    """
    home = reader.graph_home()
    stamp = graph_rows.stamp(readers)
    if home is None:
        return _in_memory(reader, read, "nothing lies beside it")
    now = _note(reader.moment())
    found = graph_index.open_graph(home, stamp, writable=False)
    if found is not None and found.noted() == now:
        return Refreshed(found, Work())
    if found is not None:
        found.close()
    why = graph_index.writable_place(home)
    if why is None:
        try:
            return _on_disk(reader, home, stamp, read)
        except (ReadOnlyError, StoreFullError) as error:
            why = error.message
    return _in_memory(reader, read, why)


def _note(moment: Moment) -> bytes:
    mark = (moment.mark(moment.generation) or b"").hex().encode()
    return b"%d %d %s %s" % (moment.generation, moment.sweeps, mark, moment.store)


def _in_memory(reader: Reader, read: Understand, why: str) -> Refreshed:
    index = MemoryIndex()
    work = Relating(reader, index, read).run(b"")
    return Refreshed(index, work._replace(in_memory=why))


def _on_disk(reader: Reader, home: str, stamp: bytes, read: Understand) -> Refreshed:
    with graph_index.alone(home):
        moment = reader.moment()
        now = _note(moment)
        index = graph_index.open_graph(home, stamp, writable=True)
        why = "there was none that can be used" if index is None else _outdated(reader, index, moment)
        if why and index is not None:
            index.close()
        if why or index is None:
            index = graph_index.make_graph(home, stamp)
        try:
            if index.noted() == now:
                return Refreshed(index, Work())  # somebody else was quicker
            work = Relating(reader, index, read).run(now)
        except BaseException:
            index.close()
            raise
        return Refreshed(index, work._replace(rebuilt=why))


def _outdated(reader: Reader, index: Index, now: Moment) -> str:
    """Return why an index must be made anew, or nothing."""
    before = index.noted().split(b" ", 3)
    if len(before) == 4:
        generation, sweeps = int(before[0]), int(before[1])
        if before[3] != now.store:
            return "it is of another store"
        if generation > now.generation or sweeps > now.sweeps:
            return "the store is older than it"
        mark = now.mark(generation)
        if mark is not None and mark.hex().encode() != before[2]:
            return "the store was put back to an earlier time and went on from there"
        if mark is not None and sweeps == now.sweeps:
            return ""
    # Swept, too long ago to be remembered, or a refresh that did not finish: look at everything.
    if not all(_is_there(reader, to_raw(id)) for id in index.units()):
        return "something that it knows is no longer in the store"
    return ""


GraphState = Literal["absent", "whole", "damaged"]


def check_graph(reader: Reader) -> GraphState:
    """Say whether the index beside a store has every row as it was written, of units that are in the store.

    It may lag behind the store: that is the business of the next question. Nothing is written.

    Raises:
        InputOutputError: the system refused.
    """
    home = reader.graph_home()
    if home is None or not graph_index.is_there(home):
        return "absent"
    index = graph_index.open_graph(home, None, writable=False, thorough=True)
    if index is None:
        return "damaged"
    try:
        index.check()
        units = index.units()
        swept = index.noted().split(b" ")[1:2] != _note(reader.moment()).split(b" ")[1:2]
    except StoreDamagedError:
        return "damaged"
    finally:
        index.close()
    # What was swept since is no damage: the next question sees that it was, and makes the index anew.
    return "whole" if swept or all(_is_there(reader, to_raw(id)) for id in units) else "damaged"


def drop_graph(reader: Reader) -> None:
    """Remove the index beside a store; the next question makes it anew.

    Raises:
        StoreBusyError, InputOutputError: another process brings it up to date, or the system refused.
    """
    home = reader.graph_home()
    if home is not None:
        graph_index.drop_graph(home)


def _is_there(reader: Reader, id: RawId) -> bool:
    return reader.info(id) is not None or is_here(reader, id)
