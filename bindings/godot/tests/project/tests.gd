# What the plugin promises, checked in a running engine. The last line is "PASSED" or "FAILED".
extends Node

const Expected := preload("res://expected.gd")

var failures := 0


func check(name: String, good: bool, detail: Variant = "") -> void:
	print("%s: %s %s" % ["ok" if good else "FAILED", name, detail])
	if not good:
		failures += 1


func model(folder: String) -> VkfModel:
	var made := VkfModel.new()
	made.directory = "res://models/" + folder
	return made


func styled(scale: float) -> VkfModel:
	var made := model("shakespeare")
	made.adapters = ["res://models/style"]
	made.adapter_scales = [scale]
	return made


func node(made: Node, from: VkfModel) -> Node:
	made.model = from
	# What awaits an answer would never end, so the run ends here.
	made.failed.connect(func(message: String) -> void:
		check("no failure", false, message)
		print("FAILED")
		get_tree().quit(1))
	add_child(made)
	return made


func _ready() -> void:
	var only := OS.get_cmdline_user_args()
	await texts()
	if only.has("images") or not only.has("short"):
		await images()
	if not only.has("short"):
		await talk()
		await speech()
		await errors()
		await search()
		await budgets()
		await scenes()
	print("PASSED" if failures == 0 else "FAILED")
	get_tree().quit(mini(failures, 1))


func texts() -> void:
	var speller: VkfGenerator = node(VkfGenerator.new(), model("g2p-en"))
	var pieces: Array[String] = []
	speller.token.connect(func(text: String) -> void: pieces.append(text))
	speller.generate("attention")
	var result: Array = await speller.finished
	check("a word as the program spells it", result[0] == Expected.WORD, result[0])
	check("tokens make the text", "".join(pieces) == result[0], pieces.size())
	check("on the engine's device", VkfServer.on_engine_device == not OS.get_cmdline_user_args().has("own"),
			VkfServer.device_name)
	var writer: VkfGenerator = node(VkfGenerator.new(), model("shakespeare"))
	writer.max_new_tokens = 40
	writer.seed = 7
	writer.sampling = 2
	writer.temperature = 1.0
	writer.generate("ROMEO:\n")
	result = await writer.finished
	check("a story as the program writes it", result[0] == Expected.STORY, result[0].c_escape())
	writer.model = styled(0.5)
	writer.generate("ROMEO:\n")
	result = await writer.finished
	check("a story in an adapter's style", result[0] == Expected.STYLED and result[0] != Expected.STORY,
			result[0].c_escape())
	writer.model = styled(0.0)
	writer.generate("ROMEO:\n")
	result = await writer.finished
	check("an adapter of scale 0 is left out", result[0] == Expected.STORY, result[0].c_escape())
	writer.grammar = "root ::= (\"yes\" | \"no\")"
	writer.generate("Shall I?")
	result = await writer.finished
	check("a grammar is kept", result[0] in ["yes", "no"], result[0])
	speller.queue_free()
	writer.queue_free()


func talk() -> void:
	var chat: VkfChat = node(VkfChat.new(), model("talk"))
	chat.system_prompt = "Speak."
	chat.max_new_tokens = 12
	chat.sampling = 1
	var expected: Array = Expected.TALK.messages.slice(1)  # without the system's
	for turn in 2:
		chat.say(expected[2 * turn].content)
		await chat.finished
	check("a conversation as the program has it", chat.messages == expected, chat.messages)
	chat.clear()
	check("a new conversation is empty", chat.messages.is_empty())
	chat.messages = expected.slice(0, 2)
	chat.say(expected[2].content)
	await chat.finished
	check("a conversation goes on from its messages", chat.messages == expected)
	chat.queue_free()


func speech() -> void:
	var listener: VkfSpeechToText = node(VkfSpeechToText.new(), model("speech"))
	listener.max_new_tokens = 8
	var sound := AudioStreamWAV.load_from_file("res://models/sound-0.wav")
	listener.transcribe_stream(sound)
	var result: Array = await listener.finished
	check("speech as the program hears it", result[0].strip_edges() == Expected.HEARD.text.strip_edges(),
			result[0].c_escape())
	var samples := PackedFloat32Array()
	for at in range(0, sound.data.size(), 2):
		samples.append(sound.data.decode_s16(at) / 32768.0)
	listener.transcribe(samples, sound.mix_rate)
	check("samples are heard like their stream", (await listener.finished)[0] == result[0])
	listener.translate = true
	listener.transcribe_stream(sound)
	result = await listener.finished
	check("a translation as the program has it", result[0].strip_edges() == Expected.TRANSLATED.text.strip_edges(),
			result[0].c_escape())
	listener.queue_free()


func errors() -> void:
	var lost := VkfGenerator.new()
	add_child(lost)
	lost.generate("nothing")
	check("no model is an error", "VkfModel" in await lost.failed)
	lost.model = model("not-there")
	lost.generate("nothing")
	check("no folder is an error", "config.json" in await lost.failed)
	lost.model = model("digits")
	lost.generate("nothing")
	check("a model without texts is an error", "tokenizer.json" in await lost.failed)
	lost.model = model("shakespeare")
	lost.model.adapters = ["res://models/no-style"]
	lost.generate("nothing")
	check("no adapter is an error", "no-style" in await lost.failed)
	lost.model = styled(0.5)
	lost.model.adapter_scales = PackedFloat32Array([0.5, 0.5])
	lost.generate("nothing")
	check("too many scales are an error", "adapter_scales" in await lost.failed)
	lost.model = model("shakespeare")
	lost.generate("")
	check("an empty prompt is an error", "empty" in await lost.failed)
	lost.generate("ROMEO:")
	lost.cancel()
	await lost.canceled
	check("what is canceled says so", true)
	lost.queue_free()


func images() -> void:
	var reader: VkfClassifier = node(VkfClassifier.new(), model("digits"))
	var same := true
	for digit in 10:
		var image := Image.load_from_file("res://models/digits/%d.png" % digit)
		if image == null:
			continue
		reader.classify_image(image)
		var from_image: Array = await reader.classified
		image.convert(Image.FORMAT_RGBA8)
		reader.classify_texture(ImageTexture.create_from_image(image))
		var from_texture: Array = await reader.classified
		same = same and from_image[0][0] == str(digit) and from_texture == from_image
	check("digits are read, from images and from textures to the same bits", same)
	# What a viewport shows: white strokes of a seven.
	var viewport := SubViewport.new()
	viewport.size = Vector2i(28, 28)
	viewport.render_target_update_mode = SubViewport.UPDATE_ALWAYS
	var back := ColorRect.new()
	back.color = Color.BLACK
	back.size = Vector2(28, 28)
	viewport.add_child(back)
	var stroke := Line2D.new()
	stroke.points = PackedVector2Array([Vector2(7, 7), Vector2(20, 7), Vector2(12, 23)])
	stroke.width = 3
	viewport.add_child(stroke)
	add_child(viewport)
	await RenderingServer.frame_post_draw
	await RenderingServer.frame_post_draw
	reader.classify_texture(viewport.get_texture())
	var seen: Array = await reader.classified
	reader.classify_image(viewport.get_texture().get_image())
	var read_back: Array = await reader.classified
	check("a viewport without read-back, to the same bits", seen == read_back, "%s %s" % [seen[0][0], seen[1][0]])
	viewport.queue_free()
	reader.queue_free()


func search() -> void:
	var memory: VkfEmbedding = node(VkfEmbedding.new(), model("embed"))
	memory.remember(PackedStringArray(["the cat sat", "a dog ran", "rain falls"]))
	check("texts are remembered", await memory.remembered == 3)
	memory.search("a dog ran", 2)
	var found: Array = await memory.found
	check("the same text is nearest", found[1][0] == "a dog ran" and found[1].size() == 2, found[2])
	memory.queue_free()


# Times of frames, sorted.
func frame_times(frames: int) -> PackedFloat64Array:
	var times := PackedFloat64Array()
	var before := Time.get_ticks_usec()
	for i in frames:
		await get_tree().process_frame
		var now := Time.get_ticks_usec()
		times.append((now - before) / 1000.0)
		before = now
	times.sort()
	return times


func print_times(name: String, times: PackedFloat64Array) -> void:
	print("%s: %d frames, median %.2f ms, 99%% %.2f ms, longest %.2f ms" % [name, times.size(),
			times[times.size() / 2], times[times.size() * 99 / 100], times[-1]])


func budgets() -> void:
	var frames := 1000
	print_times("without inference", await frame_times(frames))
	var writer: VkfGenerator = node(VkfGenerator.new(), model("shakespeare"))
	writer.max_new_tokens = 100
	var again := func(_text: String, _score: float) -> void: writer.generate("ROMEO:\n")
	writer.generate("ROMEO:\n")
	await writer.finished
	writer.finished.connect(again)
	writer.generate("ROMEO:\n")
	for budget: float in [2.0, 4.0]:
		VkfServer.frame_budget_ms = budget
		print_times("a budget of %d ms" % budget, await frame_times(frames))
	VkfServer.frame_budget_ms = 2.0
	writer.finished.disconnect(again)
	writer.cancel()
	await writer.canceled
	writer.queue_free()
	check("frames go on", true)


func scenes() -> void:
	var shared := model("g2p-en")
	var device: Array[int] = []
	var host: Array[int] = []
	for i in 100:
		var speller: VkfGenerator = node(VkfGenerator.new(), shared)
		speller.generate("scene")
		await speller.finished
		await get_tree().process_frame  # in its signal a node cannot be freed
		speller.free()
		await get_tree().process_frame
		if i in [19, 99]:
			device.append(VkfServer.memory_in_use)
			host.append(OS.get_static_memory_usage())
	check("device memory is flat over scenes", device[0] == device[1], device)
	check("host memory is flat over scenes", host[1] - host[0] < 1 << 20, host)
