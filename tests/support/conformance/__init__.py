"""What every implementation of a protocol must do: cases as functions, shared by their tests."""
