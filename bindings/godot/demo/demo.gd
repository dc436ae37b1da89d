# A character speaks what a language model writes: its lips follow the phonemes of a second model. A
# third one reads the digit on the pad, from the viewport's texture, which is never read back. Lines of
# the dialogue are found by their vectors. All of them share a budget of milliseconds a frame.
#
#   godot --path . -- shot FILE SECONDS    saves a picture after that time, and quits
extends Node2D

const LINES: Array[String] = ["To be, or not to be", "My kingdom for a horse", "All the world is a stage"]

var words: PackedStringArray = []
var story := ""


func _ready() -> void:
	for node: Node in [$Speller, $Writer, $Reader, $Search]:
		node.failed.connect(func(message: String) -> void: push_error(message))
	$PadView.texture = $Pad.get_texture()
	$Writer.token.connect(_on_token)
	$Writer.finished.connect(func(_text: String, _score: float) -> void: _write())
	$Speller.finished.connect(func(phonemes: String, _score: float) -> void: $Face.say(phonemes))
	$Reader.classified.connect(_on_classified)
	$Search.found.connect(func(query: String, texts: PackedStringArray, scores: PackedFloat32Array) -> void:
		$Found.text = "\"%s\" is nearest to \"%s\" (%.2f)" % [query, texts[0], scores[0]])
	$Search.remember(PackedStringArray(LINES))
	$Search.search("the world's a stage")
	$Reader.classify_texture($Pad.get_texture())
	_write()
	var arguments := OS.get_cmdline_user_args()
	if arguments.size() == 3 and arguments[0] == "shot":
		await get_tree().create_timer(float(arguments[2])).timeout
		get_viewport().get_texture().get_image().save_png(arguments[1])
		print("on the engine's device: %s; a line of the story: %s" % [VkfServer.on_engine_device, story.right(60).c_escape()])
		print($Digit.text, "; ", $Found.text)
		print($FrameTimes.summary())
		get_tree().quit()


func _write() -> void:
	$Writer.seed += 1
	$Writer.generate(story.right(40) if story.length() > 40 else "ROMEO:\n")


func _on_token(text: String) -> void:
	story += text
	$Line.text = story.right(120)
	# A word is complete once something follows it.
	var all := story.right(200).split(" ", false)
	if text.begins_with(" ") and all.size() > 1 and not $Face.is_speaking():
		var word := all[-2].strip_edges().to_lower()
		var letters := ""
		for letter in word:
			if letter >= "a" and letter <= "z":
				letters += letter
		if letters != "" and not $Speller.is_busy():
			$Speller.generate(letters)


func _on_classified(labels: PackedStringArray, scores: PackedFloat32Array) -> void:
	$Digit.text = "the pad shows %s (%d%%)" % [labels[0], roundi(100 * scores[0])]
	$Reader.classify_texture($Pad.get_texture())


func _input(event: InputEvent) -> void:
	if event is InputEventMouse and $PadView.get_rect().has_point(event.position):
		$Pad/Strokes.paint(event, event.position - $PadView.position)
