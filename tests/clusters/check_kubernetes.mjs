// Checks Kubernetes manifests against the schemas of their kinds, which the npm package kubernetes-models
// holds: node check_kubernetes.mjs FOLDER_OF_PACKAGES FILE...
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [folder, ...files] = process.argv.slice(2);
const require = createRequire(folder + "/package.json");
const yaml = require("js-yaml");
// The package has modules alone, which a script of another folder finds by their path.
const models = (version) => import(pathToFileURL(`${folder}/node_modules/kubernetes-models/${version}/index.js`));
const kinds = {
  "batch/v1 Job": (await models("batch/v1")).Job,
  "policy/v1 PodDisruptionBudget": (await models("policy/v1")).PodDisruptionBudget,
};

// What is wrong with a manifest; empty: nothing.
function mistake(manifest) {
  const name = `${manifest.apiVersion} ${manifest.kind}`;
  if (!kinds[name]) return `[${name}] is a kind that this check does not know.`;
  try {
    new kinds[name](manifest).validate();
    return "";
  } catch (error) {
    return `[${name}] ${error.message}`;
  }
}

// A check that sees nothing finds nothing either.
function seesPlantedMistakes(manifest) {
  const planted = [
    (m) => (m.spec.slector = {}),
    (m) => (m.spec.completionMode = 5),
    (m) => (m.spec.minAvailable = []),
    (m) => delete m.spec.template?.spec.containers,
  ];
  return planted.filter((change) => {
    const copy = structuredClone(manifest);
    change(copy);
    return mistake(copy) !== "";
  }).length;
}

let failed = false;
for (const file of files) {
  for (const manifest of yaml.loadAll(readFileSync(file, "utf8"))) {
    const wrong = mistake(manifest);
    const seen = seesPlantedMistakes(manifest);
    console.log(`${file}: ${manifest.kind}: ${wrong || "agrees with its schema"}, ${seen} planted mistakes seen`);
    failed ||= wrong !== "" || seen < 1;
  }
}
process.exit(failed ? 1 : 0);
