"""Every error that reclock raises on purpose, written for the person at the prompt.

An error has four parts, as in PostgreSQL: a SQLSTATE ``code`` for programs, a
lower-case one-line ``message`` without a full stop, an optional ``detail`` with the
facts, and an optional ``hint`` that says what to do. ::

    Error                           XX000  internal error
    ├── InvalidValue                22023  an argument outside its domain
    │   ├── TimestampOverflow       22008  a time past the largest representable one
    │   ├── BindingsNotMonotone     22023  time to positions must only move forward
    │   ├── MalformedMessage        22P02  a message that is not what its format says
    │   ├── ConflictingStatements   22000  two messages that cannot both be true
    │   └── NegativeCount           22000  more of a row was taken away than was there
    ├── SourceUnavailable           08006  a source did not answer, or accepts no log-in
    ├── SourceRegressed             55000  a source moved backwards (deleted, truncated)
    │   └── PositionsLost           55000  a source no longer has what was to be read
    ├── SourceStopped               22P02  a source that was told to stop at a bad record did
    ├── SinkUnavailable             08006  the log of a sink did not answer
    ├── SinkStopped                 58000  a sink cannot write on, and a person must act
    ├── SinkRegressed               55000  what a sink wrote is not where it was left
    ├── TimelineMismatch            0A000  data of unlike clocks in one dataflow
    ├── Unreadable                  22023  a read outside [since, …)
    ├── HoldViolation               55000  a hold asked for, or moved to, compacted time
    ├── WriteTooFarAhead            22008  a write timestamp far beyond the clock
    ├── InvalidCompaction           55000  since may not move there
    ├── StatementError              42000  a statement refused before anything ran
    │   ├── InvalidSyntax           42601  text that is not a statement
    │   ├── NotSupported            0A000  a construct that is not implemented
    │   ├── UndefinedName           42703  no such column, relation (42P01) or function (42883)
    │   ├── AmbiguousName           42702  a name that means more than one thing
    │   ├── WrongType               42804  an expression of a type that does not fit
    │   ├── WrongGrouping           42803  a column that is neither grouped nor aggregated
    │   ├── InvalidDefinition       42P17  a view that could not be maintained
    │   ├── DuplicateName           42P07  a name that another object has
    │   └── DependentObjects        2BP01  an object that others need
    ├── ProtocolViolation           08P01  bytes or messages that the wire protocol does not allow
    ├── Rejected                    28000  who may not log in, or not now
    ├── Forbidden                   42501  a statement that a role may not run
    ├── Interrupted                 57014  a statement that was cancelled
    ├── InvalidTransactionState     25001  a statement that its transaction does not allow
    ├── SerializationFailure        40001  a transaction that others got in the way of
    ├── ConstraintViolation         23000  rows that a table's constraints refuse
    ├── ExpressionFailed            22000  an expression failed on some row
    ├── StatementTimeout            57014  waited as long as statement_timeout allows
    ├── SparkError                  58000  Spark could not be started, or a job of it failed
    ├── JavaMissing                 58000  no Java that is new enough
    ├── BrokerFailed                58000  the broker for development was not started or stopped
    ├── DemoFailed                  58000  the demonstration could not go on
    ├── DataflowExpired             57P01  stopped before dropped data could matter
    └── StorageError                58030  the durable store failed
        ├── StorageFull             53100  no space left for an append
        ├── Corrupt                 XX001  a durable record that does not decode
        ├── SegmentMissing          58P01  a file that a manifest names is not there
        ├── NewerFormat             0A000  written by a later version of reclock
        ├── StateInUse              55006  another process owns the state directory
        ├── Fenced                  57P04  another process took over; nothing was written
        └── OutcomeUnknown          40003  the connection broke while committing

The tree is the contract: catch by class in Python, by ``code`` over the wire. Errors
survive pickling, because Spark carries them between processes.
"""

from __future__ import annotations

from typing import ClassVar


class Error(Exception):
    """The base of all errors of reclock.

    >>> e = InvalidValue("offset must not be negative", detail="offset is -1")
    >>> e.code, e.message, e.detail, e.hint
    ('22023', 'offset must not be negative', 'offset is -1', None)
    >>> print(e)
    offset must not be negative
    detail: offset is -1
    """

    sqlstate: ClassVar[str] = "XX000"

    def __init__(
        self,
        message: str,
        *,
        detail: str | None = None,
        hint: str | None = None,
        code: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail
        self.hint = hint
        self.code = code or self.sqlstate

    def __str__(self) -> str:
        lines = [self.message]
        if self.detail:
            lines.append(f"detail: {self.detail}")
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.message), self.__dict__


def _rebuild(cls: type[Error], message: str) -> Error:
    """Recreate a pickled error; its attributes follow as state."""
    error = cls.__new__(cls)
    Exception.__init__(error, message)
    return error


class InvalidValue(Error):
    """An argument outside its domain: a negative offset, an empty interval."""

    sqlstate = "22023"


class TimestampOverflow(InvalidValue):
    """A step past the largest representable timestamp."""

    sqlstate = "22008"


class BindingsNotMonotone(InvalidValue):
    """Bindings whose positions go back while time goes forward."""


class MalformedMessage(InvalidValue):
    """A message that is not what its format says it is."""

    sqlstate = "22P02"


class ConflictingStatements(InvalidValue):
    """Two messages about the same time that cannot both be true."""

    sqlstate = "22000"


class NegativeCount(InvalidValue):
    """A row that occurs a negative number of times where a multiset is needed."""

    sqlstate = "22000"


class SourceUnavailable(Error):
    """A source did not answer, or refused (28000, 42501): nothing is lost, try again later."""

    sqlstate = "08006"


class SourceRegressed(Error):
    """A source reports positions before ones that are already bound."""

    sqlstate = "55000"


class PositionsLost(SourceRegressed):
    """A source no longer has positions that were to be read, such as records past retention."""


class SourceStopped(Error):
    """A record cannot be decoded, and the source was told to stop there: ``on_error = 'stop'``."""

    sqlstate = "22P02"


class SinkUnavailable(Error):
    """The log that a sink writes to did not answer: nothing is lost, it is tried again."""

    sqlstate = "08006"


class SinkStopped(Error):
    """A sink cannot write on until a person acts; ``code`` says how: 42P01 for a lost topic."""

    sqlstate = "58000"


class SinkRegressed(Error):
    """The progress of a sink in its consistency topic is not what the sink left there."""

    sqlstate = "55000"


class TimelineMismatch(Error):
    """Data of different timelines asked to meet in one dataflow (P6)."""

    sqlstate = "0A000"


class Unreadable(Error):
    """A read at a time that has been compacted away or will never be complete."""

    sqlstate = "22023"


class HoldViolation(Error):
    """A hold asked for, or moved to, a time that is no longer kept."""

    sqlstate = "55000"


class WriteTooFarAhead(Error):
    """A write timestamp so far beyond the clock that it would drag the timeline along."""

    sqlstate = "22008"


class InvalidCompaction(Error):
    """A compaction frontier that would move back, or pass what is complete."""

    sqlstate = "55000"


class StatementError(Error):
    """A statement that was refused before anything ran; ``position`` counts characters from 1."""

    sqlstate = "42000"

    def __init__(
        self,
        message: str,
        *,
        detail: str | None = None,
        hint: str | None = None,
        code: str | None = None,
        position: int | None = None,
    ) -> None:
        super().__init__(message, detail=detail, hint=hint, code=code)
        self.position = position


class InvalidSyntax(StatementError):
    """Text that is not a statement; ``position`` says where it stops being one."""

    sqlstate = "42601"


class NotSupported(StatementError):
    """A construct that is not implemented: refused by name, never ignored."""

    sqlstate = "0A000"


class UndefinedName(StatementError):
    """A column, relation or function that does not exist."""

    sqlstate = "42703"


class AmbiguousName(StatementError):
    """A name that means more than one thing where it stands."""

    sqlstate = "42702"


class WrongType(StatementError):
    """An expression whose type does not fit where it stands."""

    sqlstate = "42804"


class WrongGrouping(StatementError):
    """A column that is neither grouped nor aggregated, or an aggregate out of place."""

    sqlstate = "42803"


class InvalidDefinition(StatementError):
    """A view that could not be maintained, such as one over a random number."""

    sqlstate = "42P17"


class DuplicateName(StatementError):
    """A name for a new object that another object has already."""

    sqlstate = "42P07"


class DependentObjects(StatementError):
    """An object that cannot be dropped because others are defined by it."""

    sqlstate = "2BP01"


class ProtocolViolation(Error):
    """A client sent what the wire protocol does not allow, or not there."""

    sqlstate = "08P01"


class Rejected(Error):
    """A log-in is refused (28P01: a wrong password), or refused now (53300: too many others)."""

    sqlstate = "28000"


class Forbidden(Error):
    """A role may not do what a statement asks for."""

    sqlstate = "42501"


class Interrupted(Error):
    """A statement was cancelled, or ran as long as it may; 57P01 is a server that stops."""

    sqlstate = "57014"


class InvalidTransactionState(Error):
    """A statement that cannot run in its transaction (25P02: an aborted one), or outside of one."""

    sqlstate = "25001"


class SerializationFailure(Error):
    """A transaction that read what others changed before it committed; none of it happened."""

    sqlstate = "40001"


class ConstraintViolation(Error):
    """Rows that a constraint refuses.

    A key twice (23505), NULL where it may not be (23502), a CHECK that is false (23514), text that
    is too long (22001). ``row`` counts the rows of the statement from 0, ``column``, ``table`` and
    ``constraint`` are names, and ``position`` is where in the text that value stands; None where
    there is no such thing.
    """

    sqlstate = "23000"
    row: int | None = None
    column: str | None = None
    table: str | None = None
    constraint: str | None = None
    position: int | None = None


class ExpressionFailed(Error):
    """An expression failed on some row; ``code`` says how: 22012 for a division by zero.

    ``place`` is where such a row can be looked for; it does not leave the process.
    """

    sqlstate = "22000"
    place: object | None = None

    def __reduce__(self) -> tuple[object, ...]:
        rebuild, arguments, state = super().__reduce__()
        assert isinstance(state, dict)
        return rebuild, arguments, {k: v for k, v in state.items() if k != "place"}


class StatementTimeout(Error):
    """A statement waited as long as ``statement_timeout`` allows."""

    sqlstate = "57014"


class SparkError(Error):
    """Spark could not be started, or a job of it failed for no reason in the data."""

    sqlstate = "58000"


class JavaMissing(Error):
    """There is no Java that is new enough, neither the machine's nor the bundled one."""

    sqlstate = "58000"


class BrokerFailed(Error):
    """The Kafka broker for development could not be fetched, started or stopped."""

    sqlstate = "58000"


class DemoFailed(Error):
    """The demonstration could not go on."""

    sqlstate = "58000"


class DataflowExpired(Error):
    """A frontier reached its expiration: going on could serve wrong answers (P8)."""

    sqlstate = "57P01"


class StorageError(Error):
    """The durable store failed; nothing was written, unless it is ``OutcomeUnknown``.

    Of a store that is far away, ``code`` says how: 08006, 28000, 42501, 53000, 58P01.
    """

    sqlstate = "58030"


class StorageFull(StorageError):
    """There is no space left on the device that holds the state."""

    sqlstate = "53100"


class Corrupt(StorageError):
    """A durable record does not decode, or its parts contradict each other."""

    sqlstate = "XX001"


class SegmentMissing(StorageError):
    """A file that a manifest names is not in the store."""

    sqlstate = "58P01"


class NewerFormat(StorageError):
    """The state was written by a later version of reclock."""

    sqlstate = "0A000"


class StateInUse(StorageError):
    """Another live process owns this state directory."""

    sqlstate = "55006"


class Fenced(StorageError):
    """Another process took over this state; this one may write nothing more."""

    sqlstate = "57P04"


class OutcomeUnknown(StorageError):
    """A commit was sent and not answered: all of it was written, or nothing."""

    sqlstate = "40003"
