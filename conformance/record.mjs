// A proxy between the gateway and an agent that writes down every request, for
// gopeers/strict to read. It passes everything on as it comes, streams too.
import { appendFileSync, writeFileSync } from 'node:fs';
import { Agent, createServer, request } from 'node:http';

// A connection of its own for each request, for the same reason.
const agent = new Agent({ keepAlive: false });

// recorder returns {through(alias, url) → the proxy's URL, stop()}. It writes
// one line of JSON a request to path.
export function recorder(path) {
  writeFileSync(path, '');
  const servers = [];
  const through = (alias, url) => new Promise((resolve, reject) => {
    const target = new URL(url);
    const server = createServer((req, res) => {
      const chunks = [];
      const out = request({ host: target.hostname, port: target.port, method: req.method, path: req.url, headers: req.headers, agent }, (answer) => {
        const { connection, 'keep-alive': keepAlive, ...headers } = answer.headers; // of this hop alone
        res.writeHead(answer.statusCode, headers);
        answer.pipe(res);
      });
      out.on('error', () => res.destroy());
      res.on('close', () => out.destroy());
      req.on('data', (chunk) => { chunks.push(chunk); out.write(chunk); });
      req.on('end', () => {
        out.end();
        const { 'content-type': contentType, accept, 'a2a-version': version, 'a2a-extensions': extensions } = req.headers;
        appendFileSync(path, `${JSON.stringify({ alias, method: req.method, path: req.url, contentType, accept, version, extensions, body: Buffer.concat(chunks).toString() })}\n`);
      });
    });
    servers.push(server);
    server.keepAliveTimeout = 0; // the gateway closes, so that no request meets a connection at its end
    server.on('error', reject);
    server.listen(0, '127.0.0.1', () => resolve(`http://127.0.0.1:${server.address().port}`));
  });
  const stop = () => Promise.all(servers.map((server) => new Promise((resolve) => { server.close(resolve); server.closeAllConnections(); })));
  return { through, stop };
}
