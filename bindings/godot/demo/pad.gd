# White strokes on black, as the digits were that the model learned from. It begins with a seven.
extends Node2D

var strokes: Array[PackedVector2Array] = [PackedVector2Array([Vector2(70, 70), Vector2(200, 70), Vector2(120, 230)])]


func paint(event: InputEvent, at: Vector2) -> void:
	if event is InputEventMouseButton and event.pressed:
		if event.button_index == MOUSE_BUTTON_RIGHT:
			strokes.clear()
		else:
			strokes.append(PackedVector2Array([at]))
	elif event is InputEventMouseMotion and event.button_mask & MOUSE_BUTTON_MASK_LEFT and not strokes.is_empty():
		strokes[-1].append(at)
	queue_redraw()


func _draw() -> void:
	draw_rect(Rect2(0, 0, 280, 280), Color.BLACK)
	for stroke in strokes:
		for point in stroke:
			draw_circle(point, 13.0, Color.WHITE)
		if stroke.size() > 1:
			draw_polyline(stroke, Color.WHITE, 26.0)
