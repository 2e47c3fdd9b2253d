// SPDX-License-Identifier: Apache-2.0

package units

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// UnknownHost names the host of processes of which nobody knows where they ran.
const UnknownHost = "unknown host"

// NoData ends the name of what nothing was recorded of: "Rank 5 (no data)".
const NoData = "(no data)"

const rankPrefix = "Rank "

// RankName names a rank of the world, as its process is called in archives: "Rank 3".
func RankName(rank int) string { return rankPrefix + strconv.Itoa(rank) }

// RankOf is the rank that a process's name stands for; false of other names, also of "Rank 3 (no data)" and "Rank 3 GPU
// 1".
func RankOf(name string) (rank int, ok bool) {
	number, _ := strings.CutPrefix(name, rankPrefix)
	rank, err := strconv.Atoi(number)
	return rank, err == nil && rank >= 0 && name == RankName(rank)
}

// Ranks writes an ascending list with its runs as ranges, "0-3,7". It is the one form of lists, in names, properties
// and sentences, because --rank takes it.
func Ranks(ranks []int) string {
	var out []byte
	for i := 0; i < len(ranks); {
		j := i
		for j+1 < len(ranks) && ranks[j+1] == ranks[j]+1 {
			j++
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = strconv.AppendInt(out, int64(ranks[i]), 10)
		if j > i {
			out = strconv.AppendInt(append(out, '-'), int64(ranks[j]), 10)
		}
		i = j + 1
	}
	return string(out)
}

// maxRankText bounds a list of ranks in a sentence: properties must fit into the anchor.
const maxRankText = 120

// RankWords names ranks of a communicator in a sentence: "rank 3", "ranks 0-7", and how many there are where the list
// would be too long.
func RankWords(ranks []int) string {
	if len(ranks) == 1 {
		return fmt.Sprintf("rank %d", ranks[0])
	}
	text := Ranks(ranks)
	if len(text) > maxRankText {
		cut := strings.LastIndexByte(text[:maxRankText], ',')
		return fmt.Sprintf("%d ranks (%s,…)", len(ranks), text[:max(cut, 0)])
	}
	return "ranks " + text
}

// RankNames names ranks of the world in a sentence, by their names: "Rank 3", "Ranks 0-7"; many as RankWords does.
func RankNames(ranks []int) string {
	text := RankWords(ranks)
	if text[0] == 'r' {
		text = "R" + text[1:]
	}
	return text
}

// maxNames bounds how many names a sentence lists.
const maxNames = 16

// NameList joins names of processes in a sentence: as RankNames does if all are ranks, others one by one.
func NameList(names []string) string {
	ranks := make([]int, 0, len(names))
	for _, name := range names {
		if rank, ok := RankOf(name); ok {
			ranks = append(ranks, rank)
		}
	}
	if len(ranks) == len(names) && len(names) > 0 {
		slices.Sort(ranks)
		return RankNames(ranks)
	}
	if len(names) > maxNames {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNames], ", "), len(names)-maxNames)
	}
	return strings.Join(names, ", ")
}
