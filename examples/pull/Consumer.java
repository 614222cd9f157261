import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.regex.Pattern;

/**
 * Takes orders that wait from Sluice at its own pace, makes them, and says what became of each: docs/queue.md.
 * SLUICE_URL=http://127.0.0.1:8090 SLUICE_TOKEN=… java Consumer.java
 *
 * It needs no library, and so reads JSON by patterns. In a shop, use its JSON library.
 */
public class Consumer {
    static final HttpClient CLIENT = HttpClient.newHttpClient();
    static final Pattern NAMES = Pattern.compile(
        "(\"sku\":\"([^\"]*)\",\"serial\":\"([^\"]*)\",\"receipt\":\"[^\"]*\").*?\"deadline\":\"([^\"]*)\"");

    static String call(String what, String body) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create(System.getenv("SLUICE_URL") + "/api/v1/queue/" + what))
            .header("Authorization", "Bearer " + System.getenv("SLUICE_TOKEN")).header("Content-Type", "application/json")
            .POST(HttpRequest.BodyPublishers.ofString(body)).build();
        HttpResponse<String> response = CLIENT.send(request, HttpResponse.BodyHandlers.ofString());
        if (response.statusCode() != 200) {
            throw new IllegalStateException(what + ": " + response.statusCode() + " " + response.body());
        }
        return response.body();
    }

    /** Makes an order in the shop: never after its deadline, and once for each serial. */
    static String place(String names, String serial, String deadline) {
        if (Instant.now().isAfter(Instant.parse(deadline))) {
            return "{" + names + ",\"outcome\":\"again\"}"; // certainly not made
        }
        // INSERT INTO orders (serial, …) … ON CONFLICT (serial) DO NOTHING
        String body = Base64.getEncoder().encodeToString(
            ("{\"order\":\"" + serial + "\"}").getBytes(StandardCharsets.UTF_8));
        return "{" + names + ",\"outcome\":\"confirmed\",\"answer\":{\"status\":201,"
            + "\"headers\":{\"Content-Type\":\"application/json\"},\"body\":\"" + body + "\"}}";
    }

    public static void main(String[] args) throws Exception {
        while (true) {
            List<String> outcomes = new ArrayList<>();
            var found = NAMES.matcher(call("take", "{\"n\":20,\"lease\":\"30s\"}"));
            while (found.find()) {
                outcomes.add(place(found.group(1), found.group(3), found.group(4)));
            }
            while (!outcomes.isEmpty()) {
                try {
                    call("settle", "{\"orders\":[" + String.join(",", outcomes) + "]}"); // may be repeated: it is done once
                    break;
                } catch (Exception e) {
                    System.err.println(e.getMessage());
                    Thread.sleep(1000);
                }
            }
            if (outcomes.isEmpty()) {
                if (System.getenv("SLUICE_ONCE") != null) {
                    return;
                }
                Thread.sleep(500);
            }
        }
    }
}
