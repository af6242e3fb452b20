// A scheduler of an endpoint picker that answers requests by lines, so that a simulation can ask it.
//
// A line in: the time now and the time at which endpoints told (ns), tokens of the prompt, and for each endpoint waiting and running
// requests, the bits of its use of keys and values, tokens of the prompt that it holds, and requests ever ended. A line out: the endpoint, or -1 where the
// request is refused.
package main

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"
)

// told is what an endpoint tells.
type told struct {
	waiting, running int
	kvUse            float64
	held, ended      int
}

// asked is a line.
type asked struct {
	number       int
	now, toldAt  time.Time
	promptTokens int
	endpoints    []told
}

func main() {
	// The first argument says whose scorers answer, the second has the parameters of ours.
	answer, err := newPicker(os.Args[1] == "ours", os.Args[2])
	if err != nil {
		panic(err)
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	for number := 0; lines.Scan(); number++ {
		words := strings.Fields(lines.Text())
		line := asked{number: number, now: at(words[0]), toldAt: at(words[1]), promptTokens: whole(words[2])}
		for own := words[3:]; len(own) > 0; own = own[5:] {
			line.endpoints = append(line.endpoints, told{whole(own[0]), whole(own[1]), float(own[2]), whole(own[3]), whole(own[4])})
		}
		fmt.Fprintln(out, answer(line))
		out.Flush()
	}
}

func whole(word string) int {
	number, err := strconv.Atoi(word)
	if err != nil {
		panic(err)
	}
	return number
}

func float(word string) float64 {
	bits, err := strconv.ParseUint(word, 16, 64)
	if err != nil {
		panic(err)
	}
	return math.Float64frombits(bits)
}

func at(word string) time.Time { return time.Unix(0, int64(whole(word))) }
