"""The reference engine: SimPy's event queue, and the rules of `model.py` as callbacks.

Tasks are generators that yield whenever they have to wait; packets are events that schedule
themselves at one server after the other, see `network.py`.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Generator
from itertools import pairwise
from math import nan

import numpy as np

from hopmap.progress import Progress
from hopmap.simulator import model
from hopmap.simulator.deadlock import deadlock
from hopmap.simulator.noise import OF_COMPUTATION, OF_OVERHEAD
from hopmap.simulator.operations import NOTHING, MessageTimestamps, OperationTimestamps, Record
from hopmap.simulator.programs.program import Op
from hopmap.simulator.result import Outcome
from hopmap.simulator.run_plan import RunPlan
from hopmap.simulator.steady_state import LoopWatch

from .buffered import BufferedNetwork
from .events import Begun, Clock, Message, Sent, Task
from .network import Network

PROGRESS_EVERY = 1 << 12  # messages

SENDS = frozenset(map(int, (Op.SEND, Op.ISEND)))
RECEIVES = frozenset(map(int, (Op.RECV, Op.IRECV)))
BEGINNING = frozenset(map(int, (Op.ISEND, Op.IRECV, Op.START)))
BLOCKING = frozenset(map(int, (Op.SEND, Op.RECV, Op.WAIT)))


def run(
    plan: RunPlan,
    record: Record = NOTHING,
    progress: Progress | None = None,
    watch: LoopWatch | None = None,
) -> Outcome:
    """Replay a plan, as far as its watch says."""
    return _Replay(plan, record, progress, watch).outcome()


class _Replay:
    """State of one run. Lists, not arrays: Python reads them several times faster."""

    def __init__(
        self, plan: RunPlan, record: Record, progress: Progress | None, watch: LoopWatch | None
    ) -> None:
        parameters, program = plan.parameters, plan.program
        self.plan = plan
        self.clock = Clock()
        network = BufferedNetwork if parameters.network_buffer else Network
        self.network = network(plan, self.clock, record.bins, self.deliver, self.complete_send)
        self.progress = progress
        self.overhead_send, self.overhead_recv = parameters.overhead_send, parameters.overhead_recv
        self.overhead_per_byte = parameters.overhead_per_byte
        self.put_latency = parameters.overhead_put_latency
        self.gap, self.gap_per_byte = parameters.gap, parameters.gap_per_byte
        self.noisy, self.factors = plan.noise.noisy, plan.noise.factors.tolist()
        self.copy_per_byte = parameters.copy_per_byte
        self.by_calls = parameters.progress == "in_mpi_calls"

        self.kind, self.target = program.kind.tolist(), program.target.tolist()
        self.compute, self.size = plan.compute.tolist(), program.size.tolist()
        self.mode, self.peer = program.mode.tolist(), program.peer.tolist()
        self.eager_limit = parameters.eager_limit
        self.eager_completion = parameters.eager_completion
        self.channel = plan.channel.tolist()
        self.rank = program.rank_of_row().tolist()
        self.free = [0.0] * program.ranks  # when the end point of a rank is free
        self.until = [0.0] * program.ranks  # by calls, when its last computation is over
        self.begun: dict[int, Begun] = {}  # by row, the latest that can be waited for
        self.iterations = [0] * program.operations  # of REPEATs, since their loop was entered
        # By channel, messages that found no receive, or receives that found no message; and how
        # many of each there were.
        self.unmatched: defaultdict[int, deque[Message | Begun]] = defaultdict(deque)
        self.sends: Counter[int] = Counter()
        self.receives: Counter[int] = Counter()
        self.arrived = 0
        self.watch = watch
        self.watched: dict[int, int] = {}
        self.iterations_ended = self.look_at = 0
        if watch is not None:
            self.watched = dict(zip(watch.rows.tolist(), watch.places.tolist(), strict=True))
            self.look_at = len(watch.ends)
        self.record = record
        # What is recorded; tasks write their operations one after the other.
        self.message_times = MessageTimestamps(
            *([nan] * plan.messages * record.messages for _ in MessageTimestamps._fields)
        )
        entries = int(plan.iterations.sum()) * record.operations
        self.operation_times = OperationTimestamps(
            *([nan] * entries for _ in OperationTimestamps._fields)
        )

        columns = plan.first, plan.first_entry(), plan.noise.stream
        firsts = zip(*(column.tolist() for column in columns), strict=True)
        self.tasks = [
            Task(plan.order_key(model.RESUME, s), *first) for s, first in enumerate(firsts)
        ]
        rows = pairwise(program.offsets.tolist())
        for task, (begin, end) in zip(self.tasks, rows, strict=True):
            task.steps = self.steps(task, begin, end)
        # One list per kind of event; SimPy calls each entry with the event.
        self.on_sent, self.on_resume = [self.send_complete], [self.resume]
        self.on_leave, self.on_answer = [self.leave], [self.answer]

    def outcome(self) -> Outcome:
        main = [self.tasks[s] for s in self.plan.program.main()]
        for task, delay in zip(main, self.plan.noise.delay.tolist(), strict=True):
            task.wait = delay
            self.wake(task, delay)
        self.clock.run()
        stuck = [
            (s, task.row, task.awaited.place) for s, task in enumerate(self.tasks) if task.row >= 0
        ]
        if stuck:
            raise deadlock(self.plan, self.clock.now, stuck, self.network.waits())
        return Outcome(
            finish=np.array([task.finish for task in main]),
            compute=np.array([task.compute for task in main]),
            communicate=np.array([task.communicate for task in main]),
            wait=np.array([task.wait for task in main]),
            servers=self.network.counters(),
            events=sum(server.packets for server in self.network.servers),
            controls=self.network.controls,
            messages=MessageTimestamps(*map(np.array, self.message_times)),
            operations=OperationTimestamps(*map(np.array, self.operation_times)),
            use=self.network.use(),
        )

    # Tasks

    def wake(self, task: Task, at: float) -> None:
        task.callbacks = self.on_resume  # type: ignore[assignment]
        self.clock.schedule_at(task, at, task.key)

    def resume(self, task: Task) -> None:
        next(task.steps, None)
        if self.watched and self.iterations_ended >= self.look_at:
            self.look()

    def look(self) -> None:
        """Go on as before, or have all ranks leave the watched loop."""
        assert self.watch is not None
        ranks, counters = len(self.watch.ends), self.network.counters()
        self.look_at = (self.iterations_ended // ranks + 1) * ranks
        if self.watch.look(counters.bytes, counters.busy, counters.waited):
            exits = zip(*(column.tolist() for column in self.watch.exits()), strict=True)
            for row, size, target in exits:
                self.size[row], self.target[row] = size, target
            self.watched = {}

    def end_iteration(self, task: Task, row: int) -> None:
        """Write the end of an iteration of a watched loop down."""
        assert self.watch is not None
        place, iteration = self.watched[row], self.iterations[row]
        if place >= 0 and iteration <= self.watch.ends.shape[1]:
            ends = self.watch.ends.reshape(-1)
            ends[place + iteration - 1] = (self.clock.now, task.compute, task.communicate)
            self.iterations_ended += 1

    def steps(  # noqa: C901, PLR0912 - all operations in one place, as the model lists them
        self, task: Task, begin: int, end: int
    ) -> Generator[None, None, None]:
        """Execute a task; it yields to wait for its next `resume`."""
        clock, row = self.clock, begin
        kinds, computing, modes = self.kind, self.compute, self.mode  # read at every step
        record, (ready, _, ended) = self.record.operations, self.operation_times
        while row < end:
            pause = computing[row]
            if pause > 0:
                pause *= self.factor(task, OF_COMPUTATION)
                task.compute += pause
                if self.by_calls and task.begun_by is None:
                    self.until[self.rank[row]] = clock.now + pause
                self.wake(task, clock.now + pause)
                yield
            if record:
                ready[task.entry] = clock.now
            kind, overhead = kinds[row], 0.0
            if kind in SENDS:
                pause = self.overhead_send + self.byte_overhead(row)
                if modes[row] == model.BUFFERED:
                    pause += self.size[row] * self.copy_per_byte
                if pause > 0 and modes[row] != model.HARDWARE:
                    pause *= self.factor(task, OF_OVERHEAD)
                    task.communicate += pause
                    self.wake(task, clock.now + pause)
                    yield
                begun = self.post_send(task, row)
            elif kind in RECEIVES:
                begun, overhead = self.post_receive(row)
            elif kind == Op.START:
                # A task may wait for it already.
                begun = self.begun.get(row) or Begun(row)
                started = self.tasks[self.target[row]]
                started.begun_by = begun
                self.wake(started, clock.now)
            elif kind == Op.WAIT:
                begun = self.begun.setdefault(self.target[row], Begun(self.target[row]))
            elif kind == Op.REPEAT:
                self.iterations[row] += 1
                if row in self.watched:
                    self.end_iteration(task, row)
                if self.iterations[row] < self.size[row]:
                    if record:
                        ended[task.entry] = clock.now
                        task.entry += 1
                    row = self.target[row]
                    continue
                self.iterations[row] = 0
            if kind in BEGINNING:
                self.begun[row] = begun
            elif kind in BLOCKING:
                overhead += self.overhead_of(begun)
            if overhead > 0:
                overhead *= self.factor(task, OF_OVERHEAD)
            task.overhead = overhead
            task.communicate += overhead
            if kind in BLOCKING and not begun.done:
                task.row, task.since = row, clock.now
                task.awaited, begun.task = begun, task
                yield
            elif overhead > 0:
                self.wake(task, clock.now + overhead)
                yield
            if record:
                ended[task.entry] = clock.now
                task.entry += 1
            row += 1
        task.row = -1
        task.finish = clock.now
        if task.begun_by is not None:
            self.complete(task.begun_by)

    def factor(self, task: Task, first: int) -> float:
        """Draw the factor of a task's next pause; `first` is where its kind begins."""
        if not self.noisy:
            return 1.0
        number = task.pauses
        task.pauses += 1
        drawn = model.mix_hash(task.stream, number) & (model.QUANTILES - 1)
        factor: float = self.factors[first + drawn]
        return factor

    def overhead_of(self, begun: Begun) -> float:
        """Seconds that a task is busy once what it waited for is complete."""
        if self.kind[begun.row] not in RECEIVES or self.mode[begun.row] == model.HARDWARE:
            return 0.0
        cost = self.mode[begun.row], self.overhead_recv, self.put_latency
        return model.receive_overhead(*cost) + self.byte_overhead(begun.row)

    def byte_overhead(self, row: int) -> float:
        """Seconds that a rank is busy with the bytes of a message, see `model.byte_overhead`."""
        kind = self.size[row], self.mode[row], self.eager_limit
        return model.byte_overhead(*kind, self.overhead_per_byte)

    def complete(self, begun: Begun) -> None:
        """Note that what a row began is complete; a task that waits for it goes on."""
        begun.done = True
        task, begun.task = begun.task, None
        if task is not None:
            now = self.clock.now
            # A rank's own task waits in a call, and an interface for no call at all.
            if task.begun_by is not None and self.mode[begun.row] != model.HARDWARE:
                now = model.in_call(now, self.until[self.rank[begun.row]])
            task.wait += now - task.since
            if self.record.operations:
                self.operation_times.woken[task.entry] = now
            self.wake(task, now + task.overhead)

    # Messages

    def post_send(self, task: Task, row: int) -> Begun:
        channel = self.channel[row]
        send = Begun(row, self.sends[channel])
        self.sends[channel] += 1
        kind = self.size[row], self.mode[row], self.eager_limit
        completion = model.completion(*kind, self.eager_completion)
        message = Message(task.message, send, completion)
        task.message += 1
        if self.record.messages:
            self.message_times.sent[message.number] = self.clock.now
        unmatched = self.unmatched[channel]
        if unmatched and isinstance(receive := unmatched[0], Begun):
            message.receive = receive
            unmatched.popleft()
        else:
            unmatched.append(message)
        send.done = completion == model.POSTED
        if model.asks_first(*kind):
            self.network.transmit(message, model.REQUEST)
        else:
            self.depart(message)
        return send

    def post_receive(self, row: int) -> tuple[Begun, float]:
        """Post a receive; return also the seconds of copying a message that is there."""
        channel = self.channel[row]
        receive = Begun(row, self.receives[channel])
        self.receives[channel] += 1
        unmatched = self.unmatched[channel]
        if not unmatched or isinstance(unmatched[0], Begun):
            unmatched.append(receive)
            return receive, 0.0
        message = unmatched.popleft()
        assert isinstance(message, Message)
        message.receive = receive
        copying = 0.0
        if message.there:
            if message.cargo == model.DATA:
                receive.done = True
                if self.mode[row] != model.HARDWARE:
                    copying = self.size[message.send.row] * self.copy_per_byte
            self.answer(message)
        return receive, copying

    def deliver(self, message: Message) -> None:
        cargo, row = message.cargo, message.send.row
        if self.record.messages and cargo != model.ACKNOWLEDGEMENT:
            times = self.message_times
            of_cargo = (times.delivered, times.requested, times.granted)
            of_cargo[cargo][message.number] = self.clock.now
        if cargo == model.DATA:
            self.arrived += 1
            if self.progress is not None and self.arrived % PROGRESS_EVERY == 0:
                self.progress(self.arrived, self.plan.messages)
        if cargo == model.ACKNOWLEDGEMENT:
            self.complete(message.send)
        elif cargo == model.GRANT:
            self.attend(message, self.rank[row])
        elif message.receive is None:
            message.there = True
        else:
            if cargo == model.DATA:
                self.complete(message.receive)
            if cargo == model.REQUEST or message.completion == model.ACKNOWLEDGED:
                self.attend(message, self.peer[row])

    def attend(self, message: Message, rank: int) -> None:
        """Let a rank answer what has arrived: now, or if it computes, in its next call."""
        now = self.clock.now
        at = model.in_call(now, self.until[rank])
        if at > now:
            message.callbacks = self.on_answer  # type: ignore[assignment]
            self.clock.schedule_at(message, at, self.plan.order_key(model.ANSWER, message.number))
        else:
            self.answer(message)

    def answer(self, message: Message) -> None:
        """Grant a request, send the data after a grant, acknowledge data that ask for it."""
        if message.cargo == model.REQUEST:
            self.network.transmit(message, model.GRANT)
        elif message.cargo == model.GRANT:
            self.depart(message)
        elif message.completion == model.ACKNOWLEDGED:
            self.network.transmit(message, model.ACKNOWLEDGEMENT)

    def depart(self, message: Message) -> None:
        """Let a message's data pass the end point of its rank."""
        row, now = message.send.row, self.clock.now
        rank = self.rank[row]
        at = model.leave_time(now, self.free[rank], self.size[row], self.gap_per_byte)
        self.free[rank] = at + self.gap
        if at > now:
            message.callbacks = self.on_leave  # type: ignore[assignment]
            self.clock.schedule_at(message, at, self.plan.order_key(model.LEAVE, message.number))
        else:
            self.leave(message)

    def leave(self, message: Message) -> None:
        """Hand a message's data to the network."""
        if self.record.messages:
            self.message_times.departed[message.number] = self.clock.now
        self.network.transmit(message, model.DATA)

    def complete_send(self, message: Message, at: float) -> None:
        """Complete a send whose data will have left the first server then."""
        if message.completion == model.LEFT:
            sent = Sent(message.send)
            sent.callbacks = self.on_sent  # type: ignore[assignment]
            kind = self.size[row := message.send.row], self.mode[row], self.eager_limit
            at = model.completion_time(at, *kind, self.eager_completion)
            self.clock.schedule_at(sent, at, self.plan.order_key(model.SENT, message.number))

    def send_complete(self, sent: Sent) -> None:
        self.complete(sent.send)
