//! Redrives by filter: what is asked for is put on record, and carried out afterwards by whichever dispatcher is free.

mod carry_out;

use redial_proto::{ApiError, CancelRedrive, Code, CreateRedrive, RedriveId, RedriveView};
use redial_store::{CreatedRedrive, MAX_OPEN_REDRIVES};

pub(crate) use carry_out::run;

use crate::{actions::Done, asked::Asked, error::store_failed};

/// Creates a redrive; the same request again is the same redrive.
pub(crate) async fn create(asked: Asked, request: CreateRedrive) -> Result<Done<RedriveView>, ApiError> {
    let created = asked.store().create_redrive(&asked.caller.user, &request).await;
    match created.map_err(|error| store_failed(&error))? {
        CreatedRedrive::New(reply) => {
            asked.begin_redrives();
            Ok(Done { reply, changed: 1 })
        }
        CreatedRedrive::Existing(reply) if is_same(&request, &reply) => Ok(Done { reply, changed: 0 }),
        CreatedRedrive::Existing(_) => {
            let message = format!(
                "redrive {} was asked for before with another filter, rate, at_most or dry_run; make another id for another redrive",
                request.redrive
            );
            Err(ApiError::new(Code::IdempotencyConflict, message))
        }
        CreatedRedrive::TooMany => {
            let message = format!(
                "{MAX_OPEN_REDRIVES} redrives of this tenant have not ended; allowed: {MAX_OPEN_REDRIVES}. Wait for one, or \
                 cancel it"
            );
            Err(ApiError::new(Code::WrongState, message))
        }
    }
}

/// Cancels a redrive; does nothing to one that has ended.
pub(crate) async fn cancel(asked: Asked, request: CancelRedrive) -> Result<Done<RedriveView>, ApiError> {
    let cancelled = asked.store().cancel_redrive(request.redrive).await.map_err(|error| store_failed(&error))?;
    let (reply, changed) = cancelled.ok_or_else(|| not_found(request.redrive))?;
    Ok(Done { reply, changed: u64::from(changed) })
}

fn not_found(redrive: RedriveId) -> ApiError {
    ApiError::new(Code::RedriveNotFound, format!("no redrive {redrive} is on record"))
}

fn is_same(request: &CreateRedrive, view: &RedriveView) -> bool {
    let rate = request.rate.unwrap_or(CreateRedrive::DEFAULT_RATE);
    (&request.filter, request.dry_run, rate, request.at_most) == (&view.filter, view.dry_run, view.rate, view.at_most)
}
