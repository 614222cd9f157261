import java.io.*;
import java.net.URI;

/** Prints the path of each target on its input, as java.net.URI reads it. */
public class Target {
    public static void main(String[] args) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String target; (target = in.readLine()) != null;) {
            try {
                System.out.println(new URI(target).getPath());
            } catch (Exception e) {
                System.out.println("!");
            }
        }
    }
}
