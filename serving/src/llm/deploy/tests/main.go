// Reads rows and decisions, and says what the exported tree makes of them.
package main

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"deployed/pleach"
)

func number(text string, base int) uint64 {
	value, err := strconv.ParseUint(text, base, 64)
	if err != nil {
		panic(err)
	}
	return value
}

func say(row []float32) {
	for _, value := range row {
		fmt.Printf("%08x ", math.Float32bits(value))
	}
	fmt.Printf("%08x %016x\n", math.Float32bits(pleach.Score(row)), math.Float64bits(pleach.Key(row)))
}

func main() {
	file, err := os.Open("input.txt")
	if err != nil {
		panic(err)
	}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if words[0] == "row" {
			row := []float32{}
			for _, word := range words[1:] {
				row = append(row, math.Float32frombits(uint32(number(word, 16))))
			}
			say(row)
			continue
		}
		next, words := 0, words[1:]
		whole := func() uint64 { next++; return number(words[next-1], 10) }
		float := func() float64 { next++; return math.Float64frombits(number(words[next-1], 16)) }
		// Go evaluates calls in the order in which they stand.
		request := pleach.Request{PromptTokens: whole(), NumRouted: whole(), FactsAgeS: float(), FastTokensPerS: float(),
			SlowTokensPerS: float(), Pickers: float()}
		all := []pleach.Facts{}
		for next < len(words) {
			all = append(all, pleach.Facts{WaitingRequests: whole(), WaitingTokens: whole(), RunningRequests: whole(),
				ContextTokens: whole(), KVTokens: whole(), SentRequests: whole(), SentTokens: whole(), Last: whole(),
				HeldTokens: whole(), PromptShare: float(), EndedPerS: float(), DrainsPerS: float(), QueueTokens: float(),
				QueueAgeS: float()})
		}
		targets := pleach.Targets{TTFTS: 0.5, TPOTS: 0.03}
		for _, row := range pleach.Rows(request, all, targets) {
			say(row)
		}
		order, refuses := pleach.Rank(request, all, targets)
		if refuses {
			fmt.Println("refused")
		} else {
			fmt.Println("chosen", order[0])
		}
	}
}
