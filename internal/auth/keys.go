package auth

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// keyCache stands before the issuer's key endpoint. go-oidc asks that endpoint
// for every token whose key it does not know, forged ones too; keyCache
// repeats its last answer until pause has passed. A key that is rotated in is
// known that much later at most.
type keyCache struct {
	base  http.RoundTripper // nil is the default transport
	pause time.Duration

	mu   sync.Mutex // held over the request: there is one at a time
	at   time.Time
	body []byte
	// err is why the last request brought no keys.
	err error
}

// RoundTrip implements http.RoundTripper.
func (k *keyCache) RoundTrip(req *http.Request) (*http.Response, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	wait := k.pause
	if k.err != nil {
		wait = min(wait, issuerPause)
	}
	if k.at.IsZero() || time.Since(k.at) >= wait {
		body, err := k.fetch(req)
		k.at, k.err = time.Now(), err
		if err == nil {
			k.body = body
		}
	}
	if k.err != nil {
		return nil, k.err
	}
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(k.body)), ContentLength: int64(len(k.body)),
	}, nil
}

func (k *keyCache) fetch(req *http.Request) ([]byte, error) {
	base := k.base
	if base == nil {
		base = http.DefaultTransport
	}
	resp, err := base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answered HTTP %d", req.URL.Redacted(), resp.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, issuerBytes+1))
	if err != nil {
		return nil, err
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	switch err := json.Unmarshal(body, &set); {
	case len(body) > issuerBytes:
		return nil, fmt.Errorf("%s answered with more than %d bytes", req.URL.Redacted(), issuerBytes)
	case err != nil || set.Keys == nil:
		return nil, fmt.Errorf("%s did not answer with a key set", req.URL.Redacted())
	}
	return body, nil
}

// trouble is why there are no keys at the moment, nil when there are.
func (k *keyCache) trouble() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}
