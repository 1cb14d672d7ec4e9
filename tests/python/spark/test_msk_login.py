"""MSK's login module signs with the AWS SDK of Iceberg's bundle: no second SDK is packed.

Fails when the JARs of `make cluster-archive` lack a class for a login to Amazon MSK.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pyspark
import pytest

from sandbox.install import parts
from sandbox.install.cluster_folder import JARS
from spark_ingest.lake import preflight

pytestmark = [pytest.mark.aws, pytest.mark.nightly]

# What Kafka's client does before it sends the first bytes.
LOGIN = """
import java.util.*;
import javax.security.auth.Subject;
import javax.security.auth.login.AppConfigurationEntry;
import javax.security.sasl.*;
import software.amazon.msk.auth.iam.*;

public class Login {
    public static void main(String[] words) throws Exception {
        new IAMLoginModule().initialize(new Subject(), null, Map.of(), Map.of());
        IAMClientCallbackHandler handler = new IAMClientCallbackHandler();
        handler.configure(Map.of(), "AWS_MSK_IAM", List.of(new AppConfigurationEntry(
            "software.amazon.msk.auth.iam.IAMLoginModule",
            AppConfigurationEntry.LoginModuleControlFlag.REQUIRED, Map.of())));
        SaslClient client = Sasl.createSaslClient(
            new String[] {"AWS_MSK_IAM"}, null, "kafka", "b-1.kafka.eu-central-1.amazonaws.com",
            Map.of(), handler);
        System.out.println(new String(client.evaluateChallenge(new byte[0]), "UTF-8"));
    }
}
"""


@pytest.mark.parametrize("version", JARS)
def test_the_packed_jars_sign_a_login(version: str, tmp_path: Path) -> None:
    parts.fetch(JARS[version])
    folders = [parts.component_folder(component) for component in JARS[version]]
    # Of Spark itself Kafka's client needs the interfaces of logging, and Jackson.
    folders.append(Path(pyspark.__file__).parent / "jars")
    source = tmp_path / "Login.java"
    source.write_text(LOGIN)
    path = ":".join(f"{folder}/*" for folder in folders)
    done = subprocess.run(
        [str(preflight.java_program()), "-cp", path, str(source)],
        env={"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "none"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    signed = json.loads(done.stdout.splitlines()[-1])
    assert signed["action"] == "kafka-cluster:Connect"
    assert signed["x-amz-credential"].startswith("AKIDEXAMPLE/")
    assert len(signed["x-amz-signature"]) == 64
