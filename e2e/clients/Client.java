import java.io.*;
import java.net.*;
import java.net.http.*;
import java.net.http.HttpRequest.*;
import java.net.http.HttpResponse.*;
import java.security.*;
import java.util.*;
import java.util.concurrent.*;

/** Java's HttpClient and HttpURLConnection against a gate: java Client.java BASE. HttpClient asks for h2c unless told not to. */
public class Client {
	static String base;

	static void check(String name, String want, Callable<Object> got) {
		try {
			String s = String.valueOf(got.call());
			System.out.println(s.equals(want) ? "ok " + name : "FAIL " + name + ": got " + s.substring(0, Math.min(300, s.length())) + ", want " + want);
		} catch (Exception e) {
			System.out.println("FAIL " + name + ": " + e);
		}
	}

	static String sha(byte[] b) throws Exception {
		return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(b));
	}

	static String told(byte[] b) throws Exception { return b.length + " " + sha(b); }

	static HttpResponse<byte[]> ask(HttpClient c, String method, String path, BodyPublisher body, String... headers) throws Exception {
		HttpRequest.Builder r = HttpRequest.newBuilder(URI.create(base + path)).method(method, body);
		if (headers.length > 0) r.headers(headers);
		return c.send(r.build(), BodyHandlers.ofByteArray());
	}

	static String one(HttpResponse<byte[]> r, String name) { return r.headers().firstValue(name).orElse("none"); }

	public static void main(String[] args) throws Exception {
		base = args[0];
		System.out.println("version java " + System.getProperty("java.version"));
		all("HttpClient, h2c", HttpClient.newBuilder().build());
		all("HttpClient, HTTP/1.1", HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build());
		old();
	}

	static void all(String name, HttpClient c) throws Exception {
		byte[] large = new byte[64 << 20];
		new Random(7).nextBytes(large);
		String order = "/api/seckill/1001/order", sold = "/api/seckill/2002/order";
		BodyPublisher none = BodyPublishers.noBody(), json = BodyPublishers.ofString("{}");
		check(name + ": GET", "page", () -> new String(ask(c, "GET", "/page", none).body()));
		check(name + ": POST", told("hello".getBytes()), () -> new String(ask(c, "POST", "/echo", BodyPublishers.ofString("hello")).body()));
		check(name + ": Expect: 100-continue", told("hello".getBytes()), () -> new String(c.send(HttpRequest.newBuilder(URI.create(base + "/echo"))
			.expectContinue(true).POST(BodyPublishers.ofString("hello")).build(), BodyHandlers.ofByteArray()).body()));
		check(name + ": 64 MiB up", told(large), () -> new String(ask(c, "PUT", "/echo", BodyPublishers.ofByteArray(large)).body()));
		check(name + ": 64 MiB up in chunks", told(large),
			() -> new String(ask(c, "PUT", "/echo", BodyPublishers.ofInputStream(() -> new ByteArrayInputStream(large))).body()));
		check(name + ": 64 MiB down", "true", () -> { var r = ask(c, "GET", "/bytes?n=67108864", none); return sha(r.body()).equals(one(r, "x-sha256")); });
		check(name + ": 64 MiB down in chunks", "true",
			() -> { var r = ask(c, "GET", "/bytes?n=67108864&chunked", none); return sha(r.body()).equals(one(r, "x-sha256")); });
		check(name + ": 409 is readable", "409 sold_out true", () -> { var r = ask(c, "POST", sold, json);
			return r.statusCode() + " " + one(r, "x-sluice-reason") + " " + new String(r.body()).contains("\"reason\":\"sold_out\""); });
		check(name + ": HEAD", "200 4 0", () -> { var r = ask(c, "HEAD", "/page", none); return r.statusCode() + " " + one(r, "content-length") + " " + r.body().length; });
		check(name + ": 204", "204 0", () -> { var r = ask(c, "GET", "/empty", none); return r.statusCode() + " " + r.body().length; });
		check(name + ": 304", "304 0", () -> { var r = ask(c, "GET", "/page", none, "If-None-Match", "\"page\""); return r.statusCode() + " " + r.body().length; });
		check(name + ": SSE", "data: 1 data: 2", () -> {
			var r = c.send(HttpRequest.newBuilder(URI.create(base + "/sse")).build(), BodyHandlers.ofInputStream());
			var in = new BufferedReader(new InputStreamReader(r.body()));
			String first = in.readLine();
			in.readLine();
			ask(c, "GET", "/sse/next", none);
			return first + " " + in.readLine(); });
		check(name + ": 429 is readable", "429 conn_rate true", () -> { HttpResponse<byte[]> r = null;
			for (int i = 0; i < 60 && (r == null || r.statusCode() != 429); i++) r = ask(c, "POST", order, json);
			return r.statusCode() + " " + one(r, "x-sluice-reason") + " " + !one(r, "retry-after").equals("none"); });
	}

	static void old() {
		check("HttpURLConnection: POST", "true", () -> { var c = (HttpURLConnection) new URL(base + "/echo").openConnection();
			c.setDoOutput(true);
			c.getOutputStream().write("hello".getBytes());
			return new String(c.getInputStream().readAllBytes()).equals(told("hello".getBytes())); });
		// It says that it likes text/html best, and so it gets the page for browsers.
		check("HttpURLConnection: 409 is readable", "409 true", () -> { var c = (HttpURLConnection) new URL(base + "/api/seckill/2002/order").openConnection();
			c.setDoOutput(true);
			c.getOutputStream().write("{}".getBytes());
			return c.getResponseCode() + " " + new String(c.getErrorStream().readAllBytes()).endsWith("</html>\n"); });
	}
}
