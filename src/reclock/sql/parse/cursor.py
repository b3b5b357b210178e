"""A place in a statement's tokens, for the statements that have a grammar of their own.

Words are matched whatever their case; quoted names are never words. Errors carry the
position of the token where the text stops making sense.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot.tokenizer_core import TokenType

from reclock.config import parse_duration
from reclock.errors import InvalidSyntax, InvalidValue
from reclock.sql.syntax.expression import Name, Parameter

if TYPE_CHECKING:
    from sqlglot.tokenizer_core import Token

_OPEN = {TokenType.L_PAREN, TokenType.L_BRACKET}
_CLOSE = {TokenType.R_PAREN, TokenType.R_BRACKET}
_PUNCTUATION = {"(", ")", ",", "="}
_QUOTED = {TokenType.IDENTIFIER, TokenType.STRING}


class Cursor:
    """Reads tokens from left to right."""

    def __init__(self, tokens: list[Token], text: str) -> None:
        self.text = text
        self._tokens = tokens
        self._at = 0

    @property
    def at_end(self) -> bool:
        """Whether every token has been read."""
        return self._at >= len(self._tokens)

    @property
    def position(self) -> int:
        """Where the next token begins, from 1."""
        return len(self.text) + 1 if self.at_end else int(self._tokens[self._at].start) + 1

    @property
    def passed(self) -> int:
        """Where the last token that was read ends, from 1."""
        return int(self._tokens[self._at - 1].end) + 1

    def error(self, expected: str | None = None, hint: str | None = None) -> InvalidSyntax:
        """Return a syntax error at the next token."""
        near = "end of input" if self.at_end else f'or near "{self._tokens[self._at].text}"'
        message = f"syntax error at {near}"
        detail = None if expected is None else f"expected {expected}"
        if hint is None:
            hint = "leave out what follows" if expected is None else f"write {expected}"
        return InvalidSyntax(message, detail=detail, hint=hint, position=self.position)

    def _match(self, words: tuple[str, ...]) -> int | None:
        """Return how many tokens ``words`` take; sqlglot has tokens of two words."""
        at, done = self._at, 0
        while done < len(words):
            if at >= len(self._tokens) or self._tokens[at].token_type in _QUOTED:
                return None
            parts = tuple(str(self._tokens[at].text).upper().split())
            if words[done : done + len(parts)] != parts:
                return None
            done += len(parts)
            at += 1
        return at - self._at

    def sees(self, *words: str) -> bool:
        """Return whether the next tokens are ``words``."""
        return self._match(words) is not None

    def accept(self, *words: str) -> bool:
        """Read ``words`` if they come next."""
        taken = self._match(words)
        if taken is None:
            return False
        self._at += taken
        return True

    def expect(self, *words: str) -> None:
        """Read ``words``, which must come next."""
        if not self.accept(*words):
            raise self.error(" ".join(words))

    def choose(self, *words: str) -> str:
        """Read one of ``words`` and return it."""
        for word in words:
            if self.accept(word):
                return word
        raise self.error(" or ".join(words))

    def end(self) -> None:
        """Refuse anything that is left."""
        if not self.at_end:
            raise self.error()

    def string(self) -> str:
        """Read a quoted string."""
        if self.at_end or self._tokens[self._at].token_type != TokenType.STRING:
            msg = "a string in single quotes"
            raise self.error(msg)
        self._at += 1
        return str(self._tokens[self._at - 1].text)

    def number(self) -> int:
        """Read a whole number."""
        if (
            self.at_end
            or self._tokens[self._at].token_type != TokenType.NUMBER
            or not str(self._tokens[self._at].text).isdecimal()
        ):
            msg = "a whole number"
            raise self.error(msg)
        self._at += 1
        return int(self._tokens[self._at - 1].text)

    def sees_kind(self, kind: TokenType) -> bool:
        """Return whether the next token is of ``kind``."""
        return not self.at_end and self._tokens[self._at].token_type == kind

    def time(self) -> int | str | Parameter:
        """Read a time: a number of the timeline, a date and time in quotes, or a parameter."""
        position = self.position
        if self.sees_kind(TokenType.PARAMETER):
            self._at += 1
            return Parameter(self.number(), position)
        return self.constant_time()

    def constant_time(self) -> int | str:
        """Read a time: a number of the timeline, or a date and time in quotes."""
        return self.string() if self.sees_kind(TokenType.STRING) else self.number()

    def duration(self) -> int:
        """Read a duration in quotes, as milliseconds."""
        position = self.position
        try:
            return parse_duration(self.string())
        except InvalidValue as error:
            raise InvalidSyntax(
                error.message, hint=error.hint, code=error.code, position=position
            ) from error

    def identifier(self) -> str:
        """Read one name."""
        if self.at_end:
            msg = "a name"
            raise self.error(msg)
        token = self._tokens[self._at]
        if token.token_type == TokenType.IDENTIFIER:
            self._at += 1
            return str(token.text)
        text = str(token.text)
        if not (text[:1].isalpha() or text[:1] == "_") or token.token_type == TokenType.STRING:
            msg = "a name"
            raise self.error(msg)
        self._at += 1
        return text.lower()

    def name(self) -> Name:
        """Read a possibly qualified name."""
        position = self.position
        parts = [self.identifier()]
        while self.accept("."):
            parts.append(self.identifier())
        return Name(tuple(parts), position)

    def names_in_parens(self) -> tuple[str, ...]:
        """Read ``(a, b, …)``."""
        self.expect("(")
        names = [self.identifier()]
        while self.accept(","):
            names.append(self.identifier())
        self.expect(")")
        return tuple(names)

    def word_value(self) -> str:
        """Read the value of an option: a string, a number (perhaps negative) or a word."""
        if self.sees_kind(TokenType.STRING):
            return self.string()
        sign = "-" if self.accept("-") else ""
        if self.at_end or str(self._tokens[self._at].text) in _PUNCTUATION:
            msg = "a value"
            raise self.error(msg)
        self._at += 1
        return sign + str(self._tokens[self._at - 1].text)

    def skip(self) -> None:
        """Read one token, whatever it is."""
        self._at += 1

    def until(self, *stops: tuple[str, ...]) -> list[Token]:
        """Read tokens up to one of ``stops``, or an unmatched ``)``, outside parentheses."""
        start, depth = self._at, 0
        while not self.at_end:
            kind = self._tokens[self._at].token_type
            if depth == 0 and (kind in _CLOSE or any(self.sees(*stop) for stop in stops)):
                break
            depth += (kind in _OPEN) - (kind in _CLOSE)
            self._at += 1
        return self._tokens[start : self._at]

    def inside_parens(self) -> list[Token]:
        """Read ``( … )`` and return what is inside."""
        self.expect("(")
        inside = self.until()
        self.expect(")")
        return inside

    def ahead(self) -> list[Token]:
        """Return what has not been read, without reading it."""
        return self._tokens[self._at :]

    def rest(self) -> list[Token]:
        """Read everything that is left."""
        start, self._at = self._at, len(self._tokens)
        return self._tokens[start:]
