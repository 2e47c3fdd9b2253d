// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

const (
	uuidA = "8932f937-d72c-4106-c12f-20bd9faed9f6"
	uuidB = "8932f937-0000-4106-c12f-20bd9faed9f6"
)

func TestIDsAreReadAsCUDAAndNVMLWriteThem(t *testing.T) {
	for text, want := range map[string]string{
		"GPU-" + uuidA: "GPU-" + uuidA,
		uuidA:          "GPU-" + uuidA,
		"gpu-8932F937-D72C-4106-C12F-20BD9FAED9F6": "GPU-" + uuidA,
		"MIG-" + uuidA:               "MIG-" + uuidA,
		"MIG-GPU-" + uuidA + "/13/0": "MIG-GPU-" + uuidA + "/13/0",
	} {
		id, err := parseID(text)
		testkit.Check(t, err == nil && id.String() == want, "%s: %v, %v; want %s", text, id, err, want)
	}
	for _, text := range []string{
		"", "GPU-", "GPU-8932f937", "MIG-GPU-" + uuidA, "MIG-GPU-" + uuidA + "/1", "MIG-GPU-" + uuidA + "/1/-1",
		"MIG-GPU-" + uuidA + "/1/0/0",
		"{" + uuidA + "}", "urn:uuid:" + uuidA, "8932f937d72c4106c12f20bd9faed9f6", "GPU-" + uuidA + "0",
		"MIG-" + uuidA + "/1/0",
	} {
		id, err := parseID(text)
		testkit.Check(t, err != nil, "%q is read as %v", text, id)
	}
}

func TestPCIAddressesHaveOneForm(t *testing.T) {
	for text, want := range map[string]string{
		"0000:07:00.0": "0000:07:00.0", "00000000:07:00.0": "0000:07:00.0", "00010000:C1:1F.0": "10000:c1:1f.0",
		"0:7:0":           "0000:07:00.0",
		" 0000:07:00.0\n": "0000:07:00.0",
		"":                "", "07:00.0": "", "0000:107:00.0": "", "0000:07:20.0": "", "0000:07:00.8": "",
		"0000:zz:00.0": "", "0000:07:00.0:1": "",
	} {
		testkit.Equal(t, canonicalPCI(text), want, "%q", text)
	}
}

// What is written is read as the same.
func FuzzIdentities(f *testing.F) {
	for _, seed := range []string{"GPU-" + uuidA, "MIG-GPU-" + uuidA + "/1/0", "0000:07:00.0", "MIG-"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if id, err := parseID(text); err == nil {
			again, err := parseID(id.String())
			testkit.Check(t, err == nil && again == id, "%q: %+v, then %+v, %v", text, id, again, err)
		}
		pci := canonicalPCI(text)
		testkit.Check(t, pci == "" || canonicalPCI(pci) == pci, "%q: %q, then %q", text, pci, canonicalPCI(pci))
	})
}

// Each quantity is described, and none twice.
func TestQuantitiesAreDescribed(t *testing.T) {
	names := make(map[string]bool)
	for i, q := range Quantities {
		testkit.Check(t, q.Name != "" && q.Description != "" && !names[q.Name] && (q.Unit != "" || i == clockReasons) &&
			(!q.Float || q.Exponent == 0), "%d: %+v", i, q)
		names[q.Name] = true
	}
}

// Entries are taken up to the first that is none, whatever the list is.
func TestLocateTakesAPrefixOfTheList(t *testing.T) {
	entries := rapid.SampledFrom([]string{"0", "1", "7", " 2 ", "-1", "", "x", "GPU-89", "MIG-" + uuidA, "0x1", "1 2"})
	valid := map[string]bool{"0": true, "1": true, "7": true, " 2 ": true, "GPU-89": true, "MIG-" + uuidA: true}
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(entries, 0, 6).Draw(t, "list")
		text := ""
		for i, e := range list {
			if i > 0 {
				text += ","
			}
			text += e
		}
		want := 0
		for want < len(list) && valid[list[want]] {
			want++
		}
		n := rapid.IntRange(0, 6).Draw(t, "ordinal")
		devices, source, ok := locate(n, variables("CUDA_VISIBLE_DEVICES="+text), true)
		testkit.Check(t, len(devices) == want && ok == (n < want) && source == "CUDA_VISIBLE_DEVICES",
			"%q, device %d: %v, %q, %v; want %d devices", text, n, devices, source, ok, want)
	})
}
