package web

import (
	"math"
	"regexp"
	"strconv"
	"testing"
)

// colours are the custom properties of a style sheet that are colours.
func colours(t *testing.T, css string) map[string][3]float64 {
	t.Helper()
	found := map[string][3]float64{}
	for _, m := range regexp.MustCompile(`--([a-z-]+): #([0-9a-f]{3}|[0-9a-f]{6});`).FindAllStringSubmatch(css, -1) {
		hex := m[2]
		if len(hex) == 3 {
			hex = string([]byte{hex[0], hex[0], hex[1], hex[1], hex[2], hex[2]})
		}
		n, err := strconv.ParseUint(hex, 16, 32)
		if err != nil {
			t.Fatal(err)
		}
		if _, twice := found[m[1]]; !twice {
			found[m[1]] = [3]float64{float64(n >> 16), float64(n >> 8 & 255), float64(n & 255)}
		}
	}
	if len(found) < 9 {
		t.Fatalf("only %d colours", len(found))
	}
	return found
}

// contrast is the contrast ratio of two colours (WCAG 2.2).
func contrast(a, b [3]float64) float64 {
	la, lb := luminance(a), luminance(b)
	return (max(la, lb) + .05) / (min(la, lb) + .05)
}

func luminance(c [3]float64) float64 {
	var l float64
	for i, weight := range []float64{.2126, .7152, .0722} {
		v := c[i] / 255
		if v <= .04045 {
			v /= 12.92
		} else {
			v = math.Pow((v+.055)/1.055, 2.4)
		}
		l += weight * v
	}
	return l
}
