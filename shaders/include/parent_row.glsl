// needs: a readonly storage block with `uint ancestry[]`: (R, C), which row owns position t of a
// row. Where recurrent states are in (R, 2, state words). Every row has two lines and writes the
// one of its position's parity. So a step reads what its parent beam left and copies nothing.
// position: of the token that the step feeds in, in the row itself (decode_state.h).

// The line that a row writes at its position.
uint own_line(uint row, uint position) { return 2u * row + (position & 1u); }

// The line of the state before `position`: of the row that owns the position before. Before
// position 0, and after a prompt, that is the first row of the item; the start of a generation
// writes both of its lines. lines: C; beams: rows of an item.
uint parent_line(uint row, uint position, uint lines, uint beams) {
  const uint owner = position == 0u ? row - row % beams : ancestry[row * lines + position - 1u];
  return own_line(owner, position + 1u);
}
