//! A short run over every decoder, and tests of the runner itself.

use std::hint::black_box;

use redial_fuzz::{Run, TARGETS, Target, grows, run, run_with};

#[test]
fn no_decoder_panics() {
    let outcome = run(&Run { seed: 1, inputs: 12_000, threads: 2, progress: |_| () });
    println!("{outcome}");
    assert!(outcome.findings.is_empty(), "{outcome}");
    assert_eq!(outcome.inputs(), 12_000);
    for (name, counts) in &outcome.counts {
        assert!(
            counts.inputs > 0 && counts.read < counts.inputs,
            "{name}: every input was read, or none was: {counts:?}"
        );
    }
}

/// Damage to documents that are refused anyway would test only the first line of a decoder.
#[test]
fn the_first_document_of_every_corpus_and_every_script_is_good() {
    for target in TARGETS {
        let mut decoder = (target.decoder)();
        let corpus = (target.corpus)();
        // Arguments are read against one of three schemas, by turns.
        let mut read = |document: &[u8]| (0..3).any(|_| decoder(document));
        let good = if target.name == "script" { corpus.len() } else { 1 };
        for document in &corpus[..good] {
            assert!(read(document), "{}: {}", target.name, String::from_utf8_lossy(document));
        }
    }
}

/// Inputs on which a decoder, or what is asked of it, once failed: texts that fit a schema as they stand, because it allows
/// more properties than it names, and do not once a property is taken for the one that was meant.
const FOUND: [(&str, &[u8]); 3] = [
    ("arguments", br#"{"location":"Paris","dayS":""}"#),
    ("arguments", br#"{"location":"Paris","tagS":"['a']"}"#),
    ("arguments", br#"{"location":"Pari{{arguments.a}}s{1e999"," days":"007"}"#),
];

#[test]
fn inputs_that_once_failed_pass() {
    for (name, input) in FOUND {
        let target = TARGETS.iter().find(|target| target.name == name).unwrap();
        let mut decoder = (target.decoder)();
        // Against each of the schemas.
        for _ in 0..3 {
            decoder(input);
        }
    }
}

const PANICS: Target = Target {
    name: "panics",
    weight: 100,
    corpus: || vec![b"good".to_vec()],
    decoder: || Box::new(|input| if input.contains(&b'{') { panic!("a brace") } else { true }),
};

#[test]
fn a_panic_is_found_and_its_input_saved() {
    let outcome = run_with(&Run { seed: 1, inputs: 5_000, threads: 2, progress: |_| () }, &[PANICS, TARGETS[0]]);
    let found = &outcome.findings[0];
    assert_eq!((found.target, found.panic.as_str()), ("panics", "a brace"));
    assert!(found.input.contains(&b'{'), "{found}");
    assert!(outcome.counts[0].1.panics > 5 && outcome.findings.len() == 5, "{outcome}");
    assert_eq!(outcome.counts[1].1.panics, 0);
}

const QUADRATIC: Target = Target {
    name: "quadratic",
    weight: 1,
    corpus: Vec::new,
    decoder: || {
        Box::new(|input| {
            let brackets = |n: usize| input[..n].iter().filter(|byte| *black_box(*byte) == b'[').count();
            // Only such texts make it slow.
            let is_slow = input.starts_with(b"[[");
            is_slow && (0..input.len()).step_by(128).map(brackets).sum::<usize>() > 0
        })
    },
};

/// Each text alone; `./dev fuzz` also puts it into documents.
#[test]
fn no_decoder_takes_more_than_linear_time() {
    let found: Vec<_> = TARGETS.iter().flat_map(|target| grows(&Target { corpus: Vec::new, ..*target })).collect();
    assert!(found.len() >= TARGETS.len(), "{found:?}");
    let superlinear: Vec<_> = found.iter().filter(|growth| growth.is_superlinear()).collect();
    assert!(superlinear.is_empty(), "{superlinear:?}");
}

#[test]
fn time_that_grows_with_the_square_is_found() {
    let found = grows(&QUADRATIC);
    assert!(found.iter().any(redial_fuzz::Growth::is_superlinear), "{found:?}");
}
