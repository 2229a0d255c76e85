package translate

import (
	"slices"
	"strconv"
	"strings"
)

const (
	// messageFactor stretches the limit for words that no later call can read
	// again (a direct message has no task): 160 000 characters by default,
	// still under what the tools declare to clients.
	messageFactor = 4
	// minShare is the least of one artifact that is worth showing.
	minShare = 600
	// markerRoom is kept free in a cut text for the marker itself.
	markerRoom = 300
	// maxPieces bounds the parts shown one by one; beyond it the texts of one
	// artifact are joined, and what is still too much is left out.
	maxPieces = 500
)

// limitPieces cuts text so that all of it together stays within the limit,
// keeping head and tail of each artifact that is cut, with a marker that names
// the call that reads the rest. Media never count and are never cut. It
// returns the pieces and whether JSON was cut.
//
// Shares are even: an artifact that needs less than its share leaves the rest
// to the others, so that a short last word survives beside a huge artifact.
func limitPieces(ps []piece, groups []origin, limit int, o *Options) (out []piece, cutJSON bool) {
	if len(ps) > maxPieces {
		ps = mergeTexts(ps)
	}
	if len(ps) <= maxPieces && bytesWithin(ps, limit) {
		return ps, false
	}
	sizes := make([]int, len(groups))
	total, lines := 0, 0
	for i := range ps {
		n := pieceSize(&ps[i])
		sizes[ps[i].group] += n
		total += n
		lines += runes(ps[i].line)
	}
	if len(ps) > maxPieces || lines > limit/2 {
		return dropTail(ps, limit), hasData(ps)
	}
	if total <= limit {
		return ps, false
	}
	share := evenShare(sizes, limit)
	if share < minShare {
		return dropTail(ps, limit), hasData(ps)
	}
	for start := 0; start < len(ps); {
		end := start
		for end < len(ps) && ps[end].group == ps[start].group {
			end++
		}
		g := ps[start].group
		if sizes[g] <= share {
			out = append(out, ps[start:end]...)
		} else {
			var cut bool
			out, cut = cutGroup(out, ps[start:end], &groups[g], max(share-markerRoom, minShare/2), o)
			cutJSON = cutJSON || cut
		}
		start = end
	}
	return out, cutJSON
}

// bytesWithin spares the usual answer the count of its characters, of which
// there are never more than bytes.
func bytesWithin(ps []piece, limit int) bool {
	for i := range ps {
		limit -= len(ps[i].text) + 2*len(ps[i].line)
	}
	return limit >= 0
}

func pieceSize(pc *piece) int { return runes(pc.text) + runes(pc.line) }

// evenShare is the level at which sizes, each cut down to it, sum to limit.
func evenShare(sizes []int, limit int) int {
	sorted := slices.Clone(sizes)
	slices.Sort(sorted)
	for i, n := range sorted {
		share := limit / (len(sorted) - i)
		if n > share {
			return share
		}
		limit -= n
	}
	return maxInt
}

// cutGroup appends the pieces of one artifact or message with the middle of
// their text left out.
func cutGroup(dst, ps []piece, from *origin, room int, o *Options) ([]piece, bool) {
	total, count := textSpan(ps)
	tail := room / 3
	headEnd, tailStart := room-tail, total-tail
	at := 0 // where the piece begins in the artifact's text
	marked, cutJSON := false, false
	left := 0
	markAt := 0
	for i := range ps {
		pc := ps[i]
		if !pc.hasText() {
			if pc.kind == pieceMedia || at < headEnd || at >= tailStart || count == 0 {
				dst = append(dst, pc)
			}
			continue
		}
		n := runes(pc.text)
		switch {
		case at+n <= headEnd || at >= tailStart: // whole, before or behind the gap
			dst = append(dst, pc)
		default:
			head, rest := splitHead(pc.text, headEnd-at)
			keep := splitTail(rest, max(tailStart-at-runes(head), 0))
			left += n - runes(head) - runes(keep)
			pc.cut = true
			cutJSON = cutJSON || pc.kind == pieceData
			switch {
			case !marked:
				marked, markAt = true, len(dst)
				pc.text = head
				dst = append(dst, pc)
				from.cutAt = at + runes(head)
				if keep != "" {
					pc.text = keep
					pc.rest = true
					dst = append(dst, pc)
				}
			case keep != "":
				pc.text = keep
				pc.rest = true
				dst = append(dst, pc)
			}
		}
		at += n + 1
	}
	if marked {
		insertMarker(dst, markAt, left, from, cutJSON, o)
		dst = joinCut(dst, markAt)
	}
	return dst, cutJSON
}

// insertMarker ends the text of the piece at with the marker.
func insertMarker(ps []piece, at, left int, from *origin, json bool, o *Options) {
	what := " characters left out"
	if json {
		what = " characters of JSON left out: what stands here is not valid JSON"
	}
	m := "[… " + strconv.Itoa(left) + what
	if from.readable != "" && o.Task != "" {
		m += ". Call " + o.pageCall(from.readable, from.cutAt)
	}
	m += "]"
	head := ps[at].text
	if head != "" && !strings.HasSuffix(head, "\n") {
		head += "\n"
	}
	ps[at].text = head + m
}

// joinCut makes one piece of a head with its marker and a tail of the same
// part.
func joinCut(ps []piece, at int) []piece {
	if at+1 < len(ps) && ps[at+1].rest && string(ps[at+1].meta) == string(ps[at].meta) {
		ps[at].text += "\n" + ps[at+1].text
		ps = append(ps[:at+1], ps[at+2:]...)
	}
	return ps
}

// hasText reports whether the piece is part of an artifact's text, which pages
// can read.
func (pc *piece) hasText() bool {
	return pc.kind == pieceText || pc.kind == pieceData || pc.kind == pieceFile
}

// textSpan is the length of the text that the pieces make, joined by line
// feeds, and how many of them have text.
func textSpan(ps []piece) (total, count int) {
	for i := range ps {
		if ps[i].hasText() {
			total += runes(ps[i].text) + 1
			count++
		}
	}
	return max(total-1, 0), count
}

// splitHead splits s after at most n characters, at a line's end where one is
// near.
func splitHead(s string, n int) (head, rest string) {
	i := runeIndex(s, n)
	if i == len(s) {
		return s, ""
	}
	if nl := strings.LastIndexByte(s[:i], '\n'); nl >= i-i/5 && nl >= 0 {
		i = nl + 1
	}
	return s[:i], s[i:]
}

// splitTail returns what remains of s after at least n characters, from the
// beginning of a line where one is near.
func splitTail(s string, n int) string {
	tail := s[runeIndex(s, n):]
	if nl := strings.IndexByte(tail, '\n'); nl >= 0 && nl < len(tail)/5 {
		tail = tail[nl+1:]
	}
	return tail
}

// runeIndex is the byte index of character n of s, len(s) past its end. A
// negative n is 0.
func runeIndex(s string, n int) int {
	if n <= 0 {
		return 0
	}
	if n >= len(s) {
		return len(s)
	}
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}

// dropTail is for an answer of very many parts: the first ones that fit, then
// one line that says how many follow.
func dropTail(ps []piece, limit int) []piece {
	var out []piece
	dropped := 0
	for i := range ps {
		pc := ps[i]
		n := pieceSize(&pc)
		switch {
		case dropped > 0 || len(out) == maxPieces:
			dropped++
			continue
		case n > limit && pc.hasText() && limit > minShare:
			head, _ := splitHead(pc.text, limit)
			pc.text, pc.cut = head, true
			dropped++
		case n > limit:
			dropped++
			continue
		}
		limit -= n
		out = append(out, pc)
	}
	line := "[… the rest left out, from " + strconv.Itoa(dropped) + " more parts: too much to show at once]"
	return append(out, piece{kind: pieceNote, line: line})
}

// mergeTexts joins neighbouring texts of one artifact or message by line
// feeds, as a page of it does.
func mergeTexts(ps []piece) []piece {
	var out []piece
	for i := 0; i < len(ps); {
		end := i + 1
		for ps[i].kind == pieceText && end < len(ps) && ps[end].kind == pieceText && ps[end].group == ps[i].group {
			end++
		}
		pc := ps[i]
		if end > i+1 {
			texts := make([]string, 0, end-i)
			for j := i; j < end; j++ {
				texts = append(texts, ps[j].text)
			}
			pc.text = strings.Join(texts, "\n")
		}
		out = append(out, pc)
		i = end
	}
	return out
}

func hasData(ps []piece) bool {
	for i := range ps {
		if ps[i].kind == pieceData {
			return true
		}
	}
	return false
}
