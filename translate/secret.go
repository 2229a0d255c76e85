package translate

import (
	"regexp"
	"strings"

	"a2agate/a2a"
)

// secretWords are the words that a question for a secret uses. Wrong alarms
// only cost a form (the question stays in the envelope); a missed one would
// put a secret through a channel that is logged. So the list is broad, and
// narrows only where the word has a common innocent use.
var secretWords = regexp.MustCompile(`(?i)` + strings.Join([]string{
	`\bpass[ _-]?(word|words|wd|wort|wörter|code|codes|phrase|phrases|key|keys)\b`, `\bpwd\b`,
	`\b(api|access|secret|private|signing|encryption|ssh|gpg|pgp|auth|account|subscription|license|master)[ _-]?keys?\b`,
	`\bapikeys?\b`, `\bsecrets?\b`, `\bcredentials?\b`, `\bbearer\b`, `\bjwt\b`,
	`\b(access|auth|authentication|authorization|api|refresh|session|personal|security|id|login|bearer|bot|oauth)[ _-]?tokens?\b`,
	`\b(one[ -]?time|verification|security|confirmation|recovery|backup|login|sign[ -]?in|authentication|authenticator|auth|2fa|mfa|sms|access)[ _-]?(codes?|pins?|phrases?)\b`,
	`\b(otp|totp|2fa|mfa|cvv2?|cvc2?)\b`,
	`\b(your|the|enter|a|card|bank) pin\b`, `\bpin[ -]?(code|number)s?\b`,
	`\b(seed|mnemonic|recovery) (phrase|words?)\b`, `\b(credit|debit|bank)[ -]?card (number|details|data)\b`, `\bcard number\b`,
	`\b(social security|ssn)\b`, `\b(client|app|shared|webhook)[ _-]?secret\b`, `\b(session )?cookies?\b.{0,40}\b(paste|send|value)\b`,
	`\b(user ?name|login|log ?in|anmelde|zugangs)[ -]?(details|data|daten|information|info)\b`,
	`\b(kennwort|kennwörter|zugangsdaten|geheimnis|anmeldedaten)\b`, `\b(mot de passe|clé (api|secrète)|identifiants)\b`,
	`(contraseñas?|\bclave (de api|secreta|de acceso)|\bcredenciales\b)`, `\b(senha|palavra-passe)\b`, `\b(wachtwoord|lösenord|adgangskode|hasło)`,
	`(пароль|密码|密碼|パスワード|비밀번호)`,
}, "|"))

// tokenWord finds a bare "token"; plainToken the uses of it that are no secret.
var (
	tokenWord  = regexp.MustCompile(`(?i)\btoken\b`)
	plainToken = regexp.MustCompile(`(?i)\b(max(imum)?|per|each|next|number of|which|what( kind of)?|erc-?\d+|utility|governance) token\b|` +
		`\btoken (limit|count|budget|usage|size|length|standard|price|symbol|type|window|ring|cost|sale|holders?|name)\b`)
)

// secretScan bounds, in bytes, how much of either end of a text is looked at.
const secretScan = 16 << 10

// AsksSecret reports whether words or a field's name ask for a password, token,
// key or another secret. It is deliberately quick to say yes.
func AsksSecret(s string) bool {
	if len(s) > 2*secretScan {
		// A question stands at the beginning or the end of a long text.
		s = s[:secretScan] + " " + s[len(s)-secretScan:]
	}
	s = CleanName(s)
	if secretWords.MatchString(s) || secretWords.MatchString(splitWords(s)) {
		return true
	}
	s = splitWords(s)
	return len(tokenWord.FindAllStringIndex(s, -1)) > len(plainToken.FindAllStringIndex(s, -1))
}

// splitWords writes apiKey and api_key as "api Key" and "api key".
func splitWords(s string) string {
	var b strings.Builder
	lower := false
	for _, r := range s {
		switch {
		case r == '_':
			r = ' '
		case lower && r >= 'A' && r <= 'Z':
			b.WriteByte(' ')
		}
		lower = r >= 'a' && r <= 'z' || r >= '0' && r <= '9'
		b.WriteRune(r)
	}
	return b.String()
}

// secretStatus reports whether anything that a status asks in words or by form
// looks like a secret.
func secretStatus(st a2a.Status) bool {
	m := st.Message
	if m == nil || m.Role == a2a.RoleUser {
		return false
	}
	for i := range m.Parts {
		if p := &m.Parts[i]; p.Kind == a2a.PartText && AsksSecret(p.Text) {
			return true
		}
	}
	for _, a := range structuredAsks(st) {
		if a.URL == "" && secretAsk(&a) {
			return true
		}
	}
	return false
}

func secretAsk(a *Ask) bool {
	if AsksSecret(a.Key) || AsksSecret(a.Message) {
		return true
	}
	f, problem := formFromSchema(a.Schema)
	if problem != "" {
		return false
	}
	for i := range f.fields {
		fd := &f.fields[i]
		if AsksSecret(fd.name) || AsksSecret(fd.title) || AsksSecret(fd.description) {
			return true
		}
	}
	return false
}
