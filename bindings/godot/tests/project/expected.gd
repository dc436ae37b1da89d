# Written anew by bindings/godot/test: what the program says of the same inputs.
const WORD := ""
const STORY := ""
