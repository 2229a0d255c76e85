package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/png"
	"time"

	"a2agate/fixtures"
)

// contentSkills answer at once, each with another kind of content.
func contentSkills() []skill {
	return []skill{
		{id: "test_simple_text", about: "Answers with a text.", play: reply(func() []fixtures.Part {
			return []fixtures.Part{fixtures.Text("This is a simple text response for testing.")}
		})},
		{id: "test_image_content", about: "Answers with an image.", play: reply(func() []fixtures.Part {
			return []fixtures.Part{fixtures.File(pixel(), "image/png", "pixel.png")}
		})},
		{id: "test_audio_content", about: "Answers with a sound.", play: reply(func() []fixtures.Part {
			return []fixtures.Part{fixtures.File(silence(), "audio/wav", "silence.wav")}
		})},
		{id: "test_embedded_resource", about: "Answers with a text file.", play: reply(func() []fixtures.Part {
			return []fixtures.Part{fixtures.File([]byte("This is an embedded resource content."), "text/plain", "resource.txt")}
		})},
		{id: "test_multiple_content_types", about: "Answers with a text, an image and a file.", play: reply(func() []fixtures.Part {
			return []fixtures.Part{
				fixtures.Text("Multiple content types test:"),
				fixtures.File(pixel(), "image/png", "pixel.png"),
				fixtures.File([]byte(`{"test":"data","value":123}`), "application/json", "data.json"),
			}
		})},
		{id: "test_error_handling", about: "Fails.", play: func(_ *fixtures.Agent, t *fixtures.Turn) error {
			return t.Fail(fixtures.Text("This tool intentionally returns an error for testing"))
		}},
		{id: "test_logging_tool", about: "Answers with a text and logs nothing.", play: reply(func() []fixtures.Part {
			return []fixtures.Part{fixtures.Text("Nothing was logged.")}
		})},
		{id: "test_tool_with_progress", about: "Reports its progress while it works.", play: progress},
		{id: "json_schema_2020_12_tool", about: "Takes arguments of a schema with the keywords of JSON Schema 2020-12.", input: schema202012, play: echoArguments},
	}
}

func reply(parts func() []fixtures.Part) func(*fixtures.Agent, *fixtures.Turn) error {
	return func(_ *fixtures.Agent, t *fixtures.Turn) error { return t.Reply(parts()...) }
}

// progressPause is longer than the least time between two progress
// notifications of the gateway, which sends at most two a second.
const progressPause = 600 * time.Millisecond

func progress(_ *fixtures.Agent, t *fixtures.Turn) error {
	for done := 0; done <= 100; done += 25 {
		if done > 0 {
			if err := t.Sleep(progressPause); err != nil {
				return err
			}
		}
		if err := t.Working(fmt.Sprintf("%d of 100 done", done)); err != nil {
			return err
		}
	}
	return t.Complete(fixtures.Text("Worked to the end."))
}

const schema202012 = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",` +
	`"$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},` +
	`"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},` +
	`"contactMethod":{"type":"string","enum":["phone","email"]},"phone":{"type":"string"},"email":{"type":"string"}},` +
	`"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],` +
	`"if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},` +
	`"then":{"required":["phone"]},"else":{"required":["email"]},"additionalProperties":false}`

func echoArguments(_ *fixtures.Agent, t *fixtures.Turn) error {
	return t.Reply(fixtures.Text("Called with " + string(t.Arguments())))
}

// pixel is a PNG of one pixel.
func pixel() []byte {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		panic(err) // writing to memory
	}
	return b.Bytes()
}

// silence is a WAV of ten milliseconds: 16 bit, mono, 8 kHz.
func silence() []byte {
	const rate, samples = 8000, 80
	var b bytes.Buffer
	b.WriteString("RIFF")
	le := binary.LittleEndian
	b.Write(le.AppendUint32(nil, 36+2*samples))
	b.WriteString("WAVEfmt ")
	b.Write(le.AppendUint32(nil, 16))
	b.Write(le.AppendUint16(nil, 1)) // PCM
	b.Write(le.AppendUint16(nil, 1)) // channels
	b.Write(le.AppendUint32(nil, rate))
	b.Write(le.AppendUint32(nil, 2*rate))
	b.Write(le.AppendUint16(nil, 2)) // bytes a sample
	b.Write(le.AppendUint16(nil, 16))
	b.WriteString("data")
	b.Write(le.AppendUint32(nil, 2*samples))
	b.Write(make([]byte, 2*samples))
	return b.Bytes()
}
