// Command kiln-go-test prints what the generated Go parser sees in Kiln files, one
// line of JSON a file.
//
// usage: kiln-go-test FILE...
//
// The folder kiln is generated/go, by go build's -overlay. Go's uint64 holds every field; a product wraps
// at 2^64.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"unicode/utf8"

	"github.com/kaitai-io/kaitai_struct_go_runtime/kaitai"

	"kiln-go-test/kiln"
)

type object map[string]any

// Go's enums have no names at run time.
var dtypes = map[kiln.KilnV2_Dtype]string{
	kiln.KilnV2_Dtype__U4: "u4", kiln.KilnV2_Dtype__U8: "u8", kiln.KilnV2_Dtype__U16: "u16",
	kiln.KilnV2_Dtype__U32: "u32", kiln.KilnV2_Dtype__U64: "u64", kiln.KilnV2_Dtype__I4: "i4",
	kiln.KilnV2_Dtype__I8: "i8", kiln.KilnV2_Dtype__I16: "i16", kiln.KilnV2_Dtype__I32: "i32",
	kiln.KilnV2_Dtype__I64: "i64", kiln.KilnV2_Dtype__F16: "f16", kiln.KilnV2_Dtype__F32: "f32",
	kiln.KilnV2_Dtype__F64: "f64", kiln.KilnV2_Dtype__Bf16: "bf16", kiln.KilnV2_Dtype__F8e4m3: "f8e4m3",
	kiln.KilnV2_Dtype__F8e5m2: "f8e5m2", kiln.KilnV2_Dtype__F8e4m3fnuz: "f8e4m3fnuz",
	kiln.KilnV2_Dtype__F8e5m2fnuz: "f8e5m2fnuz", kiln.KilnV2_Dtype__E8m0: "e8m0",
	kiln.KilnV2_Dtype__E2m3: "e2m3", kiln.KilnV2_Dtype__E3m2: "e3m2", kiln.KilnV2_Dtype__E2m1: "e2m1",
	kiln.KilnV2_Dtype__Bool: "bool", kiln.KilnV2_Dtype__C64: "c64", kiln.KilnV2_Dtype__C128: "c128",
	kiln.KilnV2_Dtype__Foreign: "foreign",
}

var schemes = map[kiln.KilnV2_Scheme]string{
	kiln.KilnV2_Scheme__None: "none", kiln.KilnV2_Scheme__Scales: "scales",
	kiln.KilnV2_Scheme__ScalesAndOuter: "scales_and_outer",
}

func main() {
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for _, path := range os.Args[1:] {
		data, err := os.ReadFile(path)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		dumped := dump(data)
		dumped["file"] = filepath.Base(path)
		if err := out.Encode(dumped); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func dump(data []byte) object {
	io := kaitai.NewStream(bytes.NewReader(data))
	file := kiln.NewKilnV2()
	if err := file.Read(io, nil, file); err != nil {
		return stop(data, must(io.Pos()), err)
	}
	descriptors := []object{}
	for _, one := range file.Descriptors {
		descriptors = append(descriptors, descriptor(one, file))
	}
	return object{
		"header": header(file.Header), "stopped": nil,
		"names": hex.EncodeToString(file.Names), "descriptors": descriptors,
	}
}

// stop says in which part the parser was; the header tells the parts, if it can be read.
func stop(data []byte, position int64, err error) object {
	stopped := object{"part": "header", "index": nil, "error": "end"}
	var invalid kaitai.ValidationFailedError
	if errors.As(err, &invalid) {
		stopped["error"] = "validation"
	}
	dumped := object{"header": nil, "stopped": stopped, "names": nil, "descriptors": nil}
	head := kiln.NewKilnV2_Header()
	if head.Read(kaitai.NewStream(bytes.NewReader(data)), nil, nil) == nil {
		dumped["header"] = header(head)
		stopped["part"] = "names"
		if uint64(position) < must(head.OfsNames()) {
			stopped["part"] = "descriptors"
			stopped["index"] = (uint64(position) - must(head.OfsDescriptors())) / must(head.LenDescriptor())
		}
	}
	return dumped
}

func header(head *kiln.KilnV2_Header) object {
	return object{
		"magic": hex.EncodeToString(head.Magic), "version": head.Version, "reserved1": head.Reserved1,
		"num_tensors": head.NumTensors, "len_names": wide(head.LenNames), "len_file": wide(head.LenFile),
		"reserved2": hex.EncodeToString(head.Reserved2),
	}
}

func descriptor(one *kiln.KilnV2_Descriptor, file *kiln.KilnV2) object {
	shape := []string{}
	for _, length := range one.Shape {
		shape = append(shape, wide(length))
	}
	fields := object{
		"ofs_name": one.OfsName, "len_name": one.LenName, "dtype": one.Dtype, "rank": one.Rank,
		"scheme": one.Scheme, "quant_axis": one.QuantAxis, "reserved1": one.Reserved1,
		"group_size": one.GroupSize, "scale_index": one.ScaleIndex, "outer_index": one.OuterIndex,
		"foreign_tag": one.ForeignTag, "ofs_data": wide(one.OfsData), "len_data": wide(one.LenData),
		"block_elements": one.BlockElements, "block_bytes": one.BlockBytes,
		"reserved2": wide(one.Reserved2), "shape": shape,

		"name": nil, "encoded_name": nil, "has_name": must(one.HasName()),
		"dtype_enum": label(dtypes, must(one.DtypeEnum())), "scheme_enum": label(schemes, must(one.SchemeEnum())),
		"dtype_name":   must(one.DtypeName()),
		"element_bits": must(one.ElementBits()), "element_count": wide(must(one.ElementCount())),
		"is_foreign": must(one.IsForeign()), "is_quantized": must(one.IsQuantized()),
		"has_axis": must(one.HasAxis()), "has_scale": must(one.HasScale()), "has_outer": must(one.HasOuter()),
		"has_groups": must(one.HasGroups()), "num_groups": nil, "num_scales": nil,
		"scale": link(must(one.Scale()), file), "outer": link(must(one.Outer()), file),
		"has_payload": must(one.HasPayload()), "payload": nil,
	}
	if must(one.HasName()) {
		encoded := must(one.EncodedName())
		fields["encoded_name"] = hex.EncodeToString(encoded)
		if utf8.Valid(encoded) {
			fields["name"] = must(one.Name())
		}
	}
	if must(one.HasGroups()) {
		fields["num_groups"] = wide(must(one.NumGroups()))
		fields["num_scales"] = wide(must(one.NumScales()))
	}
	if must(one.HasPayload()) {
		payload := must(one.Payload())
		sum := sha256.Sum256(payload)
		fields["payload"] = object{"length": strconv.Itoa(len(payload)), "sha256": hex.EncodeToString(sum[:])}
	}
	return fields
}

// link returns the index of the very descriptor that the parser hands back.
func link(target *kiln.KilnV2_Descriptor, file *kiln.KilnV2) any {
	for index, one := range file.Descriptors {
		if one == target {
			return index
		}
	}
	return nil
}

func label[K comparable](names map[K]string, value K) any {
	if name, ok := names[value]; ok {
		return name
	}
	return nil
}

func wide(value uint64) string { return strconv.FormatUint(value, 10) }

// must returns what an instance of a file that was read gives; its error would be a fault of the parser.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
