// Package supervisor is the socket between a session's programs and the process
// that runs them, which alone writes the session's state: a Server answers with
// Handlers, Call asks, and Of and InsideOf ask the kernel who listens where.
//
// Over the unix socket SUPERQODE_SOCKET the program sends one JSON object a line and
// gets one JSON object a line back.
//
//	→ {"schema_version":1,"op":"finding.add","args":{…}}
//	← {"schema_version":1,"ok":true,"reply":{…}}
//	← {"schema_version":1,"ok":false,"error":{"code":"usage","message":"…"}}
//
// A line is at most 1 MiB. The server answers only processes of the same user;
// the kernel names the peer. No operation changes what the session is, what it
// has done or what was blocked.
package supervisor
