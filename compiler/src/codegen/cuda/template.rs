//! The templates of kernels, filled in.

use minijinja::{Environment, Value};
use once_cell::race::OnceBox;
use thiserror::Error;

/// Why there is no text: always a defect of dtc.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct TemplateError(pub(super) String);

impl From<minijinja::Error> for TemplateError {
    fn from(error: minijinja::Error) -> TemplateError {
        TemplateError(format!("template: {error:#}"))
    }
}

/// Fills in a template.
pub(super) fn render(name: &str, values: &Value) -> Result<String, TemplateError> {
    static ENVIRONMENT: OnceBox<Environment<'static>> = OnceBox::new();
    let environment = ENVIRONMENT.get_or_init(|| {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(minijinja::UndefinedBehavior::Strict);
        for template in dtc_templates::KERNELS {
            // A template that does not parse is missing when it is asked for, and an error then.
            let _ = environment.add_template(template.name, template.text);
        }
        Box::new(environment)
    });
    Ok(environment.get_template(name)?.render(values)?)
}
