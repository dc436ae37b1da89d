# A face whose mouth takes the shapes of ARPAbet phonemes: how wide, and how far open.
extends Node2D

const SHAPES := {
	"AA": Vector2(0.9, 1.0), "AE": Vector2(1.0, 0.8), "AH": Vector2(0.8, 0.6), "AO": Vector2(0.6, 0.9),
	"AW": Vector2(0.7, 0.9), "AY": Vector2(0.9, 0.8), "EH": Vector2(1.0, 0.6), "ER": Vector2(0.7, 0.4),
	"EY": Vector2(1.1, 0.5), "IH": Vector2(1.0, 0.4), "IY": Vector2(1.2, 0.3), "OW": Vector2(0.5, 0.7),
	"OY": Vector2(0.6, 0.7), "UH": Vector2(0.5, 0.4), "UW": Vector2(0.4, 0.4), "B": Vector2(0.9, 0.0),
	"P": Vector2(0.9, 0.0), "M": Vector2(0.9, 0.0), "F": Vector2(0.9, 0.1), "V": Vector2(0.9, 0.1),
	"W": Vector2(0.4, 0.2),
}
const SECONDS := 0.11  # of a phoneme

var phonemes: PackedStringArray = []
var since := 0.0
var mouth := Vector2(0.9, 0.0)
var spoken := 0


func say(text: String) -> void:
	phonemes = text.split(" ", false)
	since = 0.0
	spoken += 1


func is_speaking() -> bool:
	return since < phonemes.size() * SECONDS


func _process(delta: float) -> void:
	since += delta
	var goal := Vector2(0.9, 0.0)
	if is_speaking():
		goal = SHAPES.get(phonemes[int(since / SECONDS)].rstrip("012"), Vector2(0.8, 0.25))
	mouth = mouth.lerp(goal, minf(1.0, 14.0 * delta))
	queue_redraw()


func _draw() -> void:
	draw_circle(Vector2.ZERO, 150.0, Color(0.93, 0.78, 0.66))
	for side: float in [-1.0, 1.0]:
		draw_circle(Vector2(55 * side, -40), 20.0, Color.WHITE)
		draw_circle(Vector2(55 * side, -38), 9.0, Color(0.2, 0.25, 0.4))
	draw_line(Vector2(0, -15), Vector2(-8, 20), Color(0.75, 0.58, 0.48), 5.0)
	var lips := PackedVector2Array()
	for i in 33:
		var angle := TAU * i / 32.0
		lips.append(Vector2(55 * mouth.x * cos(angle), 70 + (4 + 34 * mouth.y) * sin(angle)))
	draw_colored_polygon(lips, Color(0.35, 0.1, 0.12))
	draw_polyline(lips, Color(0.75, 0.3, 0.3), 6.0)
