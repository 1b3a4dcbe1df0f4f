// SPDX-License-Identifier: Apache-2.0

// Prints test vectors for src/kube/quantity.ts: what apimachinery makes of many valid and invalid texts.
// A row is [text, error] or [text, canonical, format, Value(), MilliValue()]; the format is the letter that tells the
// three names apart (I, S, E); an empty value is the canonical text, an empty milli value is the value and "000".
// Run: go run . > ../../../src/kube/quantity.vectors.json
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"sort"
	"strings"

	inf "gopkg.in/inf.v0"
	"k8s.io/apimachinery/pkg/api/resource"
)

var suffixes = []string{"", "", "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei",
	"e0", "e1", "e2", "e3", "E3", "e-3", "e+6", "E-1", "e-9", "e-12", "e18", "e5"}

func main() {
	r := rand.New(rand.NewSource(1))
	inputs := map[string]bool{}
	for _, text := range handwritten() {
		inputs[text] = true
	}
	for len(inputs) < 2600 {
		inputs[valid(r)] = true
	}
	for len(inputs) < 3000 {
		inputs[garbled(r)] = true
	}
	texts := make([]string, 0, len(inputs))
	for text := range inputs {
		texts = append(texts, text)
	}
	sort.Strings(texts)

	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	fmt.Fprintln(out, "[")
	for i, text := range texts {
		row := []any{text}
		if q, err := resource.ParseQuantity(text); err != nil {
			row = append(row, map[error]int{resource.ErrFormatWrong: 0, resource.ErrNumeric: 1, resource.ErrSuffix: 2}[err])
		} else {
			canonical := q.String()
			dec := q.AsDec()
			value, milli := round(dec, 0), round(dec, 3)
			if milli == value+"000" {
				milli = ""
			}
			if value == canonical {
				value = ""
			}
			row = append(row, canonical, string(q.Format[7:8]), value, milli)
		}
		line, _ := json.Marshal(row)
		comma := ","
		if i == len(texts)-1 {
			comma = ""
		}
		fmt.Fprintf(out, "%s%s\n", line, comma)
	}
	fmt.Fprintln(out, "]")
}

// round is what Value() and MilliValue() promise (away from zero), without their overflow and without the
// wrong sign of the rounding of negative big decimals.
func round(d *inf.Dec, scale inf.Scale) string {
	rounded := new(inf.Dec).Round(d, scale, inf.RoundUp)
	return rounded.UnscaledBig().String()
}

func handwritten() []string {
	return []string{"", "0", "-0", "+0", "00", "0.0", ".", "-.", "+", "-", "m", "Ki", "e3", "e-10", ".e-10", "-e-10", ".5", "5.", "1.G", "1.Ki",
		".5Ki", "0Ki", "0.0Ki", "1023", "1023Ki", "1024Ki", "1024", "1000Ki", "8Ki", "16Ki", "1025Ki", "0.1Ki", "0.5Ki", "1.5Ki", "1.5Gi",
		"0.0001Ki", "-0.0001Ki", "-1.5", "-1.5Gi", "1.500", "0.500", "05", "+5", "+5Ki", "5E3", "5e3", "1e1", "10e1",
		"9223372036854775807", "9223372036854775808", "-9223372036854775808", "9223372036854775807Ki", "8Ei", "7Ei", "-8Ei", "-9Ei",
		"99999999999999999999", "999999999999999999", "1000000000000000000", "9E", "10E", "100E",
		"0.000000001", "0.0000000001", "-0.0000000001", "1n", "0.1n", "0.5n", "1.1n", "1e-9", "1e-10", "1e-20", "0e-20",
		"1u", "1.5u", "1.0000000001", "12.3456789123", "1e99", "1e-999", "100m", "1000m", "1500m", "0.1", "0.25", "2.50", "3.140",
		" 1", "1 ", "1 Ki", "1ki", "1K", "1KI", "1kI", "1Mib", "1MB", "1g", "1t", "1Gi1", "1e", "1E", "1E1", "1e+", "1e-", "1ee3", "1e3e3", "1e1.5",
		"1.2.3", "1..2", "--1", "+-1", "1-", "1+3", "1-3", "0x10", "1_000", "1,5", "NaN", "Inf", "infinity", "1i", "1n1", "1Kii", "１", "1µ",
		"1e99999999999999999999", "1e 3", "abc", "{}", "null", "true", "1\n", "1\t"}
}

func valid(r *rand.Rand) string {
	sign := []string{"", "", "", "", "-", "+"}[r.Intn(6)]
	text := sign + digits(r, []int{1, 1, 2, 3, 4, 5, 8, 14, 19}[r.Intn(9)])
	if r.Intn(3) == 0 {
		text += "." + digits(r, r.Intn(10))
	}
	return text + suffixes[r.Intn(len(suffixes))]
}

func digits(r *rand.Rand, n int) string {
	var b strings.Builder
	for b.Len() < n {
		switch r.Intn(6) {
		case 0:
			b.WriteString("000")
		case 1:
			b.WriteString("0")
		default:
			b.WriteByte(byte('0' + r.Intn(10)))
		}
	}
	return b.String()
}

func garbled(r *rand.Rand) string {
	const alphabet = "0123456789.+-eEinumkKMGTP x"
	text := []byte(valid(r))
	for n := 1 + r.Intn(2); n > 0; n-- {
		at := r.Intn(len(text) + 1)
		text = append(text[:at:at], append([]byte{alphabet[r.Intn(len(alphabet))]}, text[at:]...)...)
	}
	return string(text)
}
