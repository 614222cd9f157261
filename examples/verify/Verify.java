import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.math.BigInteger;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.List;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;

/**
 * Tells orders that the gateway signed from others: "ok" or "bad" for each line of its input. A line holds signature,
 * method, target, serial, SKU, quantity and deadline, with tabs between them; what follows is ignored. Java 11.
 */
public final class Verify {
    /**
     * Whether signature is that of the six fields under one of the keys. Of a servlet's request they are getMethod(),
     * getRequestURI() and, if it is not null, "?" + getQueryString(), and, as text, the headers Idempotency-Key,
     * Sluice-Sku, Sluice-Quantity and Sluice-Deadline. Servers read a header's bytes as ISO 8859-1.
     */
    static boolean verify(List<byte[]> keys, String signature, String method, String target, String serial, String sku,
            String quantity, String deadline) throws GeneralSecurityException {
        if (signature == null) {
            return false;
        }
        byte[] text = String.join("\n", "v1", method, target, serial, sku, quantity, deadline).getBytes(ISO_8859_1);
        boolean good = false;
        for (byte[] key : keys) {
            Mac mac = Mac.getInstance("HmacSHA256");
            mac.init(new SecretKeySpec(key, "HmacSHA256"));
            String want = String.format("v1=%064x", new BigInteger(1, mac.doFinal(text)));
            good |= MessageDigest.isEqual(want.getBytes(UTF_8), signature.getBytes(UTF_8)); // in constant time
        }
        return good;
    }

    /** The keys that count: the one that signs and, while it replaces another, that one. */
    static List<byte[]> secrets() {
        List<byte[]> keys = new ArrayList<>();
        for (String name : List.of("SLUICE_SECRET", "SLUICE_SECRET_OLD")) {
            String key = System.getenv(name);
            if (key != null && key.length() >= 16) { // anybody knows the empty key
                keys.add(key.getBytes(UTF_8));
            }
        }
        return keys;
    }

    public static void main(String[] args) throws IOException, GeneralSecurityException {
        List<byte[]> keys = secrets();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, ISO_8859_1));
        for (String line; (line = in.readLine()) != null;) {
            String[] f = line.split("\t", -1);
            boolean good = f.length >= 7 && verify(keys, f[0], f[1], f[2], f[3], f[4], f[5], f[6]);
            System.out.println(good ? "ok" : "bad");
        }
    }
}
