// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/nccl-otf2/nccl-otf2/internal/hidden"
	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// reading is what a parser takes a text for.
type reading struct {
	OK           bool
	Number, Last uint64
}

// plugin is the plugin's own reader of settings, in a program (plugin/tests/settings_host.c).
type plugin struct {
	mu  sync.Mutex
	in  io.Writer
	out *bufio.Reader
}

var startPlugin = sync.OnceValues(func() (*plugin, error) {
	folder, err := os.MkdirTemp("", "settings")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	program := filepath.Join(folder, "host")
	build := exec.Command("cc", "-std=gnu11", "-O1", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-o", program,
		"../plugin/tests/settings_host.c", "../plugin/settings.c", "../plugin/config.c")
	if said, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%v: %w\n%s", build, err, said)
	}
	cmd := exec.Command(program)
	cmd.Env = []string{}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &plugin{in: in, out: bufio.NewReader(out)}, cmd.Start() // it ends with this program's end of the pipe
})

// ask sends a question of words, hexadecimal but the first, and returns the answer, a line.
func (p *plugin) ask(t testing.TB, words ...string) string {
	t.Helper()
	question := words[0]
	for _, w := range words[1:] {
		question += " " + hex.EncodeToString([]byte(w))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	testkit.Value(fmt.Fprintln(p.in, question))(t)
	answer := testkit.Value(p.out.ReadString('\n'))(t)
	return strings.TrimSuffix(answer, "\n")
}

func (p *plugin) reads(t testing.TB, key, text string) (r reading) {
	t.Helper()
	var ok int
	answer := p.ask(t, key, text)
	_, err := fmt.Sscanf(answer, "%d %d %d", &ok, &r.Number, &r.Last)
	testkit.Require(t, err == nil, "%s=%q: answer %q: %v", key, text, answer, err)
	r.OK = ok == 1
	return r
}

// mask stands for MaskVariable among the keys.
const mask = "MASK"

// variable is the environment variable of a key.
func variable(key string) string {
	if key == mask {
		return MaskVariable
	}
	return Prefix + key
}

// goReads is what the collector and the tool take a text for; what they refuse counts as the default.
func goReads(key, text string) reading {
	s, err := Load(env(variable(key) + "=" + text))
	r := reading{OK: err == nil, Last: math.MaxUint64}
	if err != nil {
		if s, err = Load(env()); err != nil {
			panic(err)
		}
	}
	chosen := func(value string) uint64 { return uint64(slices.Index(lookupSetting(key).Choices, value)) }
	switch key {
	case "ENABLE":
		r.Number = bit(s.Enable)
	case "DEBUG":
		r.Number = bit(s.Debug)
	case "MEMORY":
		r.Number = s.Memory
	case "START_LIMIT":
		r.Number = uint64(s.StartLimit)
	case "RING":
		r.Number = chosen(s.Ring)
	case "SCOREP":
		r.Number = chosen(s.Scorep)
	case "CLOCK":
		r.Number = chosen(s.Clock)
	case "START":
		r.Number = bit(s.Paused)
	case "EVENTS", mask:
		r.Number = uint64(s.chosenEvents())
	case "CUPTI":
		r.Number = s.CUPTI
	case "WINDOW":
		if s.Window != nil {
			r.Number, r.Last = s.Window.First, s.Window.Last
		}
	default:
		panic("how is " + key + " compared?")
	}
	return r
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// pluginKeys are the settings that the plugin reads and that are more than a text.
func pluginKeys() (keys []string) {
	for i := range Table {
		if row := &Table[i]; knownToPlugin(row) && row.Kind != Path {
			keys = append(keys, row.Key)
		}
	}
	return append(keys, mask)
}

// texts are values as users write them, and as nobody should; all are tried as each setting.
var texts = []string{
	"", " ", "\t", "\n", ",", " , ", "\u00a0", "\u3000",
	"0", "1", "on", "ON", "off", "Off", "true", "FALSE", "yes", "no", "No", " on", "off ", "\toff\n", "maybe", "o n",
	"ofﬀ", "enable",
	"512M", "512 M", "512  M", "512\tM", "512M ", " 512M", "512\u00a0M", "512MB", "512MiB", "512Mi", "512mib", "512mIb",
	"512 MiB", "512 Mi B", "512iB",
	"512B", "8388608B", "8388608 b", "524288K", "524288\u212a", "1G", "1g", "1GB", "1T", "1TiB", "512m", "512MM",
	"512Q", "M", "iB", "B", " M",
	"4M", "4194304", "4194303", "4095K", "0M", "00512M", "+512M", "-512M", "512.5M", "5e8", "512_000_000", "0x20000000",
	"0X8", "４Ｍ", "٤M",
	"9223372036854775807", "9223372036854775808", "18446744073709551615", "18446744073709551616",
	"99999999999999999999", "8589934591G", "8589934592G", "9999999999G",
	"1", "2", "600", "601", "0600", "00000000000000000000000000000002", "-3", "+5", "5s", "5 s", "2.0", "soon", " 7",
	"7 ", "4294967298",
	"memfd", "MEMFD", "shm", "Shm", " shm ", "ſhm", "disk", "auto", "AUTO", "tsc", "TSC", "monotonic", "Monotonic",
	"host", "HOST", "paused", "Paused", "PAUSED ",
	"gpu", "GPU", "light", "net", "net-sums", "Net-Sums,all", "all", "All", " all ", "light,net", "light net",
	"light\tnet", "light\nnet", "light;net", "light\u00a0net", "coll", "Coll,KernelPhase",
	"COLL, kernelch ,,ProxyCtrl",
	"Coll,Kernel", "ProxyStep\u200b", "proxyſtep", "\u212aernelCh", "KernelLaunch,", ",gpu", "Group\x00", "Group\xff",
	"\xff",
	"memcpy", "MEMSET", "sync", "ſync", "memory", "sync, memory", "memcpy memset", "memcpy,nvtx", "on,memcpy",
	"all,memcpy", "kernels", "off,sync",
	"ops:1000-2000", "ops:1000-", "ops:-2000", "OPS:0-1", "Ops:1-2", " ops:1-2 ", "ops:1 - 2", "ops: 1-2", "ops:-",
	"ops:", "ops:2-1", "ops:1-1", "ops:1", "ops:1-2-3", "ops:+1-2", "ops:1-2x",
	"ops:0x1-0x2", "ops:0-9223372036854775807", "ops:0-9223372036854775808", "ops:0-18446744073709551615",
	"ops:0-18446744073709551616", "op:1-2", "1-2", "opſ:1-2", "ops:９-",
	"3", "4095", "0xFfF", "0XF00", "010", "0x", "0xg", "x1", "65535", "65536", "4294967295", "4294967296", "0xffffffff",
	"0x100000000", "-1", "12 34", " 12", "12 ", "0x 1", "1_0", "0x1_0", "0b1", "0o7",
}

// The plugin takes each text for what the collector and the tool take it for.
func TestPluginReadsTheSame(t *testing.T) {
	p := pluginOf(t)
	for _, key := range pluginKeys() {
		for _, text := range texts {
			if strings.Contains(text, "\x00") {
				continue // no variable can have it
			}
			if want, got := goReads(key, text), p.reads(t, key, text); got != want {
				t.Errorf("%s=%q: the plugin reads %+v, the collector %+v", variable(key), text, got, want)
			}
		}
	}
}

func pluginOf(t testing.TB) *plugin {
	t.Helper()
	need.Program(t, "cc", "gcc")
	testkit.Watch(t, "../plugin", "../plugin/tests")
	p := testkit.Value(startPlugin())(t)
	return p
}

// text draws what a variable can hold: pieces of values, mostly, and any bytes.
func text(t *rapid.T, label string) string {
	pieces := rapid.SampledFrom(append(texts, "ops:", "-", "0x", "K", "M", "G", "i", "B", ",", " ", "\t", "1", "9",
		"00", "\u017f", "\u212a", "\xc3"))
	drawn := rapid.OneOf(
		rapid.Custom(func(t *rapid.T) string {
			return strings.Join(rapid.SliceOfN(pieces, 1, 5).Draw(t, "pieces"), "")
		}),
		rapid.String(),
		rapid.Custom(func(t *rapid.T) string { return string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) }),
	).Draw(t, label)
	return strings.ReplaceAll(drawn, "\x00", "")
}

func TestPluginReadsAnyTextTheSame(t *testing.T) {
	p := pluginOf(t)
	rapid.Check(t, func(rt *rapid.T) {
		key := rapid.SampledFrom(pluginKeys()).Draw(rt, "key")
		value := text(rt, "text")
		if want, got := goReads(key, value), p.reads(t, key, value); got != want {
			rt.Errorf("%s=%q: the plugin reads %+v, the collector %+v", variable(key), value, got, want)
		}
	})
}

// FuzzPlugin: the plugin takes any text for what the collector and the tool take it for.
func FuzzPlugin(f *testing.F) {
	p, keys := pluginOf(f), pluginKeys()
	for i, text := range texts {
		f.Add(uint8(i), text)
	}
	f.Fuzz(func(t *testing.T, n uint8, text string) {
		text = strings.ReplaceAll(text, "\x00", "")
		text = text[:min(len(text), 1<<18)] // the host's lines are bounded
		key := keys[int(n)%len(keys)]
		want, got := goReads(key, text), p.reads(t, key, text)
		testkit.Check(t, got == want, "%s=%q: the plugin reads %+v, the collector %+v", variable(key), text, got, want)
	})
}

// numbers are values of settings of NCCL's, which it reads with strtoll.
var numbers = append([]string{"+1", "-1", "+0", "-0", "+-0", "- 0", "0x0", "0x1", "0X", "0xg", "00", "08", "01", "0b0",
	"0b1", "0B1", "0o1", "1_0", "0_1", "0 # quick", "12 # slow",
	" 0", "\v0", "\u00a00", "-9223372036854775808", "-9223372036854775809", "-99999999999999999999",
	"0x7fffffffffffffff", "0x8000000000000000", "-0x8000000000000000", "0777777777777777777777",
	"01777777777777777777777"}, texts...)

// Where GPU times are asked for is decided in the plugin, and reported by doctor, run and report: the same in all
// versions of the API and with all settings.
func TestPluginWithholdsStampsWhereTheTableSays(t *testing.T) {
	p := pluginOf(t)
	compare := func(t testing.TB, api int, allgatherv, rearch string) (asked bool) {
		asked, _ = hidden.Stamps(api, func(name string) string {
			return map[string]string{hidden.AllGatherV: allgatherv, hidden.Rearch: rearch}[name]
		})
		got := p.ask(t, "stamps", fmt.Sprint(api), hidden.AllGatherV, allgatherv, hidden.Rearch, rearch)
		testkit.Check(t, got == fmt.Sprint(bit(asked)),
			"v%d, %q, %q: the plugin says %s, the table %v", api, allgatherv, rearch, got, asked)
		return asked
	}
	count := map[bool]int{}
	for api := range 10 {
		for _, value := range numbers {
			if strings.Contains(value, "\x00") {
				continue
			}
			for _, other := range []string{"", "0", "1"} {
				count[compare(t, api, value, other)]++
				count[compare(t, api, other, value)]++
			}
		}
	}
	testkit.Check(t, count[true] != 0 && count[false] != 0, "only one answer: %v", count)
	rapid.Check(t, func(rt *rapid.T) {
		number := rapid.OneOf(rapid.SampledFrom(numbers), rapid.StringMatching(`[ +-]?(0x?)?[0-9a-f]{0,20}[ _x#]?`),
			rapid.Custom(func(t *rapid.T) string { return text(t, "text") }))
		value := func(label string) string { return strings.ReplaceAll(number.Draw(rt, label), "\x00", "") }
		compare(t, rapid.IntRange(0, 9).Draw(rt, "api"), value("allgatherv"), value("rearch"))
	})
}

// Raw files of a job without a collector lie where its other processes' shards do.
func TestPluginNamesTheSameDirectory(t *testing.T) {
	p := pluginOf(t)
	names := []string{Prefix + "DIR"}
	for _, s := range jobSteps {
		for _, name := range []string{s.job, s.step, s.attempt} {
			if name != "" {
				names = append(names, name)
			}
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		value := rapid.SampledFrom(append([]string{"", " ", "1", "none", "None", " 7", "a/b", "prterun-a/1@1", "../..",
			".x", "é", "\t", "a\x1b[2Jb\rc", "\x7f", "\xff", strings.Repeat("long/", 50), strings.Repeat("é", 150)},
			noSteps...))
		vars, words := map[string]string{}, []string{"directory"}
		for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom(names), rapid.ID).Draw(rt, "names") {
			vars[name] = value.Draw(rt, name)
			words = append(words, name, vars[name])
		}
		lookup := func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
		s := testkit.Value(Load(lookup))(rt)
		want, got := s.Directory(lookup, 0xdeadbeef), p.ask(t, words...)
		testkit.Check(rt, got == want, "%v: the plugin says %q, the collector %q", vars, got, want)
	})
}
