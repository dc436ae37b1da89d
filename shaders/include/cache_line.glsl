// needs: nothing.
// Lines of a key/value cache that has fewer of them than a row has positions. The first `sinks`
// positions stay. The others take turns in the lines that follow.
uint cache_line(uint position, uint sinks, uint lines) {
  return position < lines ? position : sinks + (position - sinks) % (lines - sinks);
}
