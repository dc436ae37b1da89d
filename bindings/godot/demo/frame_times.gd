# The last frames as bars, 2 pixels a millisecond, with a line at a sixtieth of a second.
extends Node2D

var times: Array[float] = []
var all := PackedFloat64Array()
var before := 0


func summary() -> String:
	var sorted := all.duplicate()
	sorted.sort()
	return "%d frames, median %.2f ms, 99%% %.2f ms" % [sorted.size(), sorted[sorted.size() / 2],
			sorted[sorted.size() * 99 / 100]]


func _process(_delta: float) -> void:
	var now := Time.get_ticks_usec()
	if before > 0:
		times.append((now - before) / 1000.0)
		all.append(times[-1])
	before = now
	if times.size() > 260:
		times.pop_front()
	queue_redraw()


func _draw() -> void:
	for i in times.size():
		draw_rect(Rect2(2 * i, 60 - minf(60.0, 2 * times[i]), 2, minf(60.0, 2 * times[i])), Color(0.3, 0.6, 0.9))
	draw_line(Vector2(0, 60 - 33.3), Vector2(520, 60 - 33.3), Color(0.9, 0.3, 0.3))
